#include "web/source/notes.h"

#include <fmt/core.h>

#include <algorithm>

namespace sonde::web {
namespace {

constexpr const char* kKind = "kind";
constexpr std::string_view kLeftOut = "left_out";
constexpr std::string_view kOfStep = "note";

std::string By(const JobDescription& job, const Owner& by) {
  if (by.node >= job.nodes.size()) return "";
  std::string text = "on " + job.nodes[by.node].host;
  if (by.rank != Owner::kNobody) text += fmt::format(", task {}", by.rank);
  return text;
}

Note OfPhase(const JobDescription& job, const Phase& phase) {
  Note note;
  note.start = phase.begin;
  note.end = phase.end;
  note.description = phase.name;
  note.notes = fmt::format("phase: begun {}, ended {} times; first {}", phase.began, phase.ended,
                           By(job, phase.by));
  note.custom[kKind] = "phase";
  return note;
}

Note OfRemark(const JobDescription& job, const Remark& remark) {
  Note note;
  note.start = remark.first;
  note.end = remark.last > remark.first ? remark.last : 0;
  note.description = remark.text;
  note.notes = fmt::format("said {} times; first {}", remark.count, By(job, remark.by));
  note.custom[kKind] = "remark";
  return note;
}

// The step's notes. Those of alarms are left out: they come as remarks, at their time.
std::vector<Note> OfStep(const JobDescription& job, const std::vector<std::string>& texts) {
  std::vector<Note> notes;
  for (const std::string& text : texts) {
    if (text.starts_with("alarm ")) continue;
    Note& note = notes.emplace_back();
    note.start = job.start;
    note.end = job.end;
    note.description = text;
    note.notes = "of the whole step";
    note.custom[kKind] = kOfStep;
  }
  return notes;
}

bool Is(const Note& note, std::string_view kind) {
  const auto found = note.custom.find(kKind);
  return found != note.custom.end() && found->second == kind;
}

bool Earlier(const Note& a, const Note& b) { return a.start < b.start; }

}  // namespace

bool IsAboutNotes(const Note& note) { return note.job.empty() && Is(note, kLeftOut); }

bool IsOfStep(const Note& note) { return Is(note, kOfStep); }

void Bound(size_t steps_left_out, Nanos first, std::vector<Note>& notes) {
  std::stable_sort(notes.begin(), notes.end(), Earlier);
  std::string what;
  if (notes.size() > kMaxNotes) {
    what = fmt::format("{} more", notes.size() - kMaxNotes + 1);
    notes.resize(kMaxNotes - 1);
  }
  if (steps_left_out > 0) {
    if (!what.empty()) what += " and ";
    what +=
        fmt::format("those of {} older {}", steps_left_out, steps_left_out == 1 ? "step" : "steps");
  }
  if (what.empty()) return;
  Note note;
  note.start = first;
  note.description = "Not all phases and remarks are shown";
  note.notes = what + " are left out: ask for a shorter range";
  note.custom[kKind] = kLeftOut;
  notes.insert(notes.begin(), std::move(note));
}

std::vector<Note> NotesOf(const JobDescription& job, const StepMoments& moments, Nanos first,
                          Nanos last) {
  return NotesOf(job, job.notes, moments, first, last);
}

std::vector<Note> NotesOf(const JobDescription& job, const std::vector<std::string>& of_step,
                          const StepMoments& moments, Nanos first, Nanos last) {
  const std::string id = job.id.ToString();
  std::vector<Note> notes;
  const auto add = [&](Note note) {
    if (note.start > last || std::max(note.start, note.end) < first) return;
    note.job = id;
    note.custom["job"] = id;
    notes.push_back(std::move(note));
  };
  for (Note& note : OfStep(job, of_step)) add(std::move(note));
  for (const Phase& phase : moments.phases) add(OfPhase(job, phase));
  for (const Remark& remark : moments.remarks) add(OfRemark(job, remark));
  std::stable_sort(notes.begin(), notes.end(), Earlier);
  return notes;
}

}  // namespace sonde::web
