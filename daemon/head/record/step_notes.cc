#include "daemon/head/record/step_notes.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/text/hostlist.h"

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
    return note.rest.empty() && !note.lost && note.text == text;
  });
  if (known) return;
  if (Note* note = Make()) note->text = std::move(text);
}

void StepNotes::AddOfNode(uint32_t node, std::string alone, std::string rest) {
  const auto says_it = [&](const Note& note) {
    return note.rest.empty() && !note.lost && rest.starts_with(": ") &&
           std::string_view(rest).substr(2) == note.text;
  };
  if (std::any_of(notes_.begin(), notes_.end(), says_it)) return;
  const auto at = std::find_if(notes_.begin(), notes_.end(),
                               [&](const Note& note) { return !note.lost && note.rest == rest; });
  Note* note = at == notes_.end() ? Make() : &*at;
  if (note == nullptr) return;
  if (note->count == 0) {
    note->text = std::move(alone);
    note->rest = std::move(rest);
  }
  AddNode(*note, node);
}

void StepNotes::AddNode(Note& note, uint32_t node) {
  if (note.nodes.size() <= node) note.nodes.resize(node + size_t{1});
  if (note.nodes[node]) return;
  note.nodes[node] = true;
  ++note.count;
}

void StepNotes::AddLost(uint32_t node, std::string why, bool counted) {
  SetCounted(node, counted);
  const auto at = std::find_if(notes_.begin(), notes_.end(),
                               [&](const Note& note) { return note.lost && note.text == why; });
  Note* note = at == notes_.end() ? Make() : &*at;
  if (note == nullptr) return;
  note->lost = true;
  note->text = std::move(why);
  AddNode(*note, node);
}

void StepNotes::SetCounted(uint32_t node, bool counted) {
  if (counted_.size() <= node) counted_.resize(node + size_t{1});
  counted_[node] = counted;
}

void StepNotes::AddLostText(const Note& note, bool counted, const std::vector<NodeInfo>& nodes,
                            std::vector<std::string>& texts) const {
  std::vector<std::string> hosts;
  for (size_t i = 0; i < note.nodes.size() && i < nodes.size(); ++i) {
    const bool has = i < counted_.size() && counted_[i];
    if (note.nodes[i] && has == counted) hosts.push_back(nodes[i].host);
  }
  if (hosts.empty()) return;
  if (hosts.size() == 1) {
    texts.push_back(fmt::format("node {} was lost: {}; {}", hosts[0], note.text,
                                counted ? "its values stay as it last sent them"
                                        : "what it counted is missing from the totals"));
  } else {
    texts.push_back(fmt::format("{} were lost: {}; {}", NameHosts(hosts), note.text,
                                counted ? "their values stay as they last sent them"
                                        : "what they counted is missing from the totals"));
  }
}

std::vector<std::string> StepNotes::Texts(const std::vector<NodeInfo>& nodes) const {
  std::vector<std::string> texts;
  for (const Note& note : notes_) {
    if (note.lost) {
      AddLostText(note, true, nodes, texts);
      AddLostText(note, false, nodes, texts);
      continue;
    }
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
