#include "web/notes.h"

#include <fmt/format.h>

#include <algorithm>

namespace sonde::web {
namespace {

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
  note.custom["kind"] = "phase";
  return note;
}

Note OfRemark(const JobDescription& job, const Remark& remark) {
  Note note;
  note.start = remark.first;
  note.end = remark.last > remark.first ? remark.last : 0;
  note.description = remark.text;
  note.notes = fmt::format("said {} times; first {}", remark.count, By(job, remark.by));
  note.custom["kind"] = "remark";
  return note;
}

}  // namespace

std::vector<Note> NotesOf(const JobDescription& job, const StepMoments& moments, Nanos first,
                          Nanos last) {
  const std::string id = job.id.ToString();
  std::vector<Note> notes;
  const auto add = [&](Note note) {
    if (note.start > last || std::max(note.start, note.end) < first) return;
    note.job = id;
    note.custom["job"] = id;
    notes.push_back(std::move(note));
  };
  for (const Phase& phase : moments.phases) add(OfPhase(job, phase));
  for (const Remark& remark : moments.remarks) add(OfRemark(job, remark));
  std::stable_sort(notes.begin(), notes.end(),
                   [](const Note& a, const Note& b) { return a.start < b.start; });
  return notes;
}

}  // namespace sonde::web
