// The events of a step as OpenTSDB's annotations: phases and remarks, its notes, and other texts
// with a time. OpenTSDB knows annotations of series and global ones; a step's annotations belong to
// all of its series.
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
  std::string job;    // the step; "": none
  std::string tsuid;  // the series; "": none
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
// The same with these notes of the step, and none of its description.
std::vector<Note> NotesOf(const JobDescription& job, const std::vector<std::string>& of_step,
                          const StepMoments& moments, Nanos first, Nanos last);

// Sorts notes and keeps at most kMaxNotes. If notes, or those of so many older steps, are left out,
// the first note, which begins at `first`, says so; IsAboutNotes recognises it.
void Bound(size_t steps_left_out, Nanos first, std::vector<Note>& notes);
bool IsAboutNotes(const Note& note);
// A note that lasts as long as its step.
bool IsOfStep(const Note& note);

}  // namespace sonde::web
