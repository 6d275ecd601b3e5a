// What happened in a step, as OpenTSDB's annotations: phases and remarks, its notes, and whatever
// else has a time and a text. OpenTSDB knows annotations of series and global ones; those of a step
// belong to all of its series.
//
// Thread safety: values, and functions without state.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/time.h"
#include "profiles/model/moments.h"

namespace sonde::web {

struct Note {
  std::string job;    // of which step; "": none
  std::string tsuid;  // of which series; "": none
  Nanos start = 0;
  Nanos end = 0;  // 0: not ended, or without duration
  std::string description;
  std::string notes;
  std::map<std::string, std::string> custom;
  bool operator==(const Note&) const = default;
};

inline constexpr size_t kMaxNotes = 10'000;  // in one answer

// The phases and remarks of a step that began within [first, last], or lasted into it, by start.
// Notes last as long as the step.
std::vector<Note> NotesOf(const JobDescription& job, const StepMoments& moments, Nanos first,
                          Nanos last);

// Puts notes in order and leaves no more than kMaxNotes. If some, or those of so many older steps,
// are left out, the first one, which begins at `first`, says so; IsAboutNotes knows it.
void Bound(size_t steps_left_out, Nanos first, std::vector<Note>& notes);
bool IsAboutNotes(const Note& note);
// One that lasts as long as its step.
bool IsOfStep(const Note& note);

}  // namespace sonde::web
