#include "daemon/head/step_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/hostlist.h"

namespace sonde::head {

StepNotes::Note* StepNotes::Make() {
  if (notes_.size() == kMaxNotes) {
    ++dropped_;
    return nullptr;
  }
  return &notes_.emplace_back();
}

void StepNotes::Add(std::string text) {
  const bool known = std::any_of(notes_.begin(), notes_.end(), [&](const Note& note) {
    return note.rest.empty() && note.text == text;
  });
  if (known) return;
  if (Note* note = Make()) note->text = std::move(text);
}

void StepNotes::AddOfNode(uint32_t node, std::string alone, std::string rest) {
  const auto at = std::find_if(notes_.begin(), notes_.end(),
                               [&](const Note& note) { return note.rest == rest; });
  Note* note = at == notes_.end() ? Make() : &*at;
  if (note == nullptr) return;
  if (note->count == 0) {
    note->text = std::move(alone);
    note->rest = std::move(rest);
  }
  if (note->nodes.size() <= node) note->nodes.resize(node + size_t{1});
  if (note->nodes[node]) return;
  note->nodes[node] = true;
  ++note->count;
}

std::vector<std::string> StepNotes::Texts(const std::vector<NodeInfo>& nodes) const {
  std::vector<std::string> texts;
  for (const Note& note : notes_) {
    if (note.count < 2) {
      texts.push_back(note.text);
      continue;
    }
    std::vector<std::string> hosts;
    for (size_t i = 0; i < note.nodes.size() && i < nodes.size(); ++i) {
      if (note.nodes[i]) hosts.push_back(nodes[i].host);
    }
    texts.push_back(NameHosts(hosts) + note.rest);
  }
  if (dropped_ != 0) {
    texts.push_back(fmt::format("{} more note{} not kept; the head's log may have them", dropped_,
                                dropped_ == 1 ? " was" : "s were"));
  }
  return texts;
}

}  // namespace sonde::head
