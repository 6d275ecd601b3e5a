#include "daemon/tree/placement.h"

#include <algorithm>
#include <tuple>

namespace sonde::tree {
namespace {

// No node; kHeadIndex is one.
constexpr uint32_t kNobody = 0xfffffffe;
// A new node may be that much deeper than need be to stay with its switch.
constexpr uint32_t kSlack = 1;
// How many nodes of one depth are looked at for the one with the fewest children.
constexpr size_t kLookAt = 64;

bool IsSwitch(std::string_view kind) { return kind == "switch" || kind == "block"; }

// Takes the text up to the next dot, or all of it.
std::string_view TakePart(std::string_view& text) {
  const size_t dot = text.find('.');
  const std::string_view part = text.substr(0, dot);
  text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
  return part;
}

}  // namespace

std::string SwitchesOf(std::string_view address, std::string_view pattern) {
  std::vector<std::string_view> names;
  size_t length = 0;
  while (!pattern.empty() && !address.empty()) {
    const std::string_view kind = TakePart(pattern);
    const std::string_view name = TakePart(address);
    if (!IsSwitch(kind) || name.empty()) continue;
    names.push_back(name);
    length += name.size() + 1;
  }
  size_t first = 0;
  while (first < names.size() && (names.size() - first > kMaxSwitches || length > kMaxTopology)) {
    length -= names[first++].size() + 1;
  }
  std::string switches;
  for (; first < names.size(); ++first) {
    if (!switches.empty()) switches += '.';
    switches += names[first];
  }
  return switches;
}

// Which node is to be placed, and where it must not be.
struct Placement::Wanted {
  uint32_t group = 0;
  uint32_t moving = kNobody;  // with all that is below it
  std::span<const uint32_t> avoid = {};
};

Placement::Placement(uint32_t fanout, uint32_t expected)
    : fanout_(std::max(fanout, 2u)), expected_(expected), groups_(1) {
  SetFree(kHeadIndex, true);
}

uint32_t Placement::Add(std::string_view switches) {
  const auto index = static_cast<uint32_t>(nodes_.size());
  nodes_.emplace_back();
  Place(index, switches);
  return index;
}

void Placement::AddAgain(uint32_t index, std::string_view switches) {
  if (nodes_[index].present) return;
  nodes_[index].present = true;
  Place(index, switches);
}

void Placement::Place(uint32_t index, std::string_view switches) {
  const uint32_t group = GroupOf(switches);
  ++present_;
  uint32_t parent = Choose({.group = group});
  if (!away_.empty() && Of(parent).depth >= Height() + kSlack) {
    // Kept places would make the tree too high.
    for (const uint32_t other : std::set<uint32_t>(away_)) Settle(other, nodes_[other].parent);
    parent = Choose({.group = group});
  }
  nodes_[index].group = group;
  nodes_[index].home = parent;
  Attach(index, parent);
  SetDepths(index, Of(parent).depth + 1);
}

std::vector<uint32_t> Placement::Remove(uint32_t index) {
  Node& node = nodes_[index];
  if (!node.present) return {};
  const uint32_t parent = node.parent;
  const uint32_t successor = node.children.empty() ? kNobody : Successor(index);
  SetFree(index, false);
  node.present = false;
  --present_;
  Detach(index);
  Settle(index, parent);
  std::vector<uint32_t> moved;
  if (successor != kNobody) {
    // The successor has no children: it takes all of them, and only its own depth changes.
    Detach(successor);
    Attach(successor, parent);
    SetDepths(successor, node.depth);
    Settle(successor, parent);
    moved.push_back(successor);
    for (const uint32_t child : std::vector<uint32_t>(node.children)) {
      Detach(child);
      Attach(child, successor);
      if (!away_.contains(child)) nodes_[child].home = successor;
      moved.push_back(child);
    }
  }
  // Nodes whose home was here stay where they are; below the successor there is no more room.
  if (node.kept == 0 && (successor == kNobody || nodes_[successor].kept == 0)) return moved;
  for (const uint32_t other : std::vector<uint32_t>(away_.begin(), away_.end())) {
    const uint32_t home = nodes_[other].home;
    if (home == index || home == successor) Settle(other, nodes_[other].parent);
  }
  return moved;
}

// The node belongs there from now on; that is where it is.
void Placement::Settle(uint32_t index, uint32_t home) {
  Node& node = nodes_[index];
  if (away_.erase(index) != 0) {
    --Of(node.home).kept;
    UpdateFree(node.home);
  }
  node.home = home;
}

bool Placement::Return(uint32_t index) {
  Node& node = nodes_[index];
  if (!away_.contains(index) || IsUnder(node.home, index)) return false;
  Detach(index);
  Settle(index, node.home);
  Attach(index, node.home);
  SetDepths(index, Of(node.home).depth + 1);
  return true;
}

uint32_t Placement::Move(uint32_t index, std::span<const uint32_t> avoid) {
  Node& node = nodes_[index];
  std::vector<uint32_t> shunned(avoid.begin(), avoid.end());
  shunned.push_back(node.parent);
  if (!node.present) return node.parent;
  const uint32_t parent = Choose({.group = node.group, .moving = index, .avoid = shunned});
  if (parent == kNobody) return node.parent;
  Detach(index);
  if (parent == node.home) {
    Settle(index, parent);
  } else if (away_.insert(index).second) {
    ++Of(node.home).kept;
    UpdateFree(node.home);
  }
  Attach(index, parent);
  SetDepths(index, Of(parent).depth + 1);
  return parent;
}

// --- Choice ---

uint32_t Placement::GroupOf(std::string_view switches) {
  uint32_t group = 0;
  for (size_t end = 0; end < switches.size(); ++end) {
    end = std::min(switches.find('.', end), switches.size());
    const auto [at, added] =
        group_of_.try_emplace(std::string(switches.substr(0, end)), groups_.size());
    if (added) {
      const uint32_t level = groups_[group].level + 1;
      groups_.push_back({.above = group, .level = level, .free = {}});
    }
    group = at->second;
  }
  return group;
}

bool Placement::IsUnder(uint32_t index, uint32_t ancestor) const {
  while (index != kHeadIndex && index != ancestor) index = nodes_[index].parent;
  return index == ancestor;
}

// Of the lowest tree that holds all.
uint32_t Placement::Height() const {
  const uint64_t nodes = std::max<uint64_t>(present_, expected_);
  uint32_t height = 1;
  uint64_t held = fanout_;
  for (uint64_t level = fanout_; held < nodes; held += level) {
    level *= fanout_;
    ++height;
  }
  return height;
}

bool Placement::Fits(uint32_t index, const Wanted& wanted) const {
  if (wanted.moving != kNobody && IsUnder(index, wanted.moving)) return false;
  return std::find(wanted.avoid.begin(), wanted.avoid.end(), index) == wanted.avoid.end();
}

// The first with a free place, from the top; no child of it is deeper than `deepest`.
uint32_t Placement::FirstIn(uint32_t group, const Wanted& wanted, uint32_t deepest) const {
  for (const auto& [depth, index] : groups_[group].free) {
    if (depth >= deepest) break;
    if (Fits(index, wanted)) return index;
  }
  return kNobody;
}

// As high as the first, but the one with the fewest children, so that nodes of other switches do
// not take all places of one node from those of its own.
uint32_t Placement::LeastUsedIn(uint32_t group, const Wanted& wanted, uint32_t deepest) const {
  uint32_t best = FirstIn(group, wanted, deepest);
  if (best == kNobody || best == kHeadIndex) return best;
  const auto& free = groups_[group].free;
  const uint32_t depth = nodes_[best].depth;
  size_t looked_at = 0;
  for (auto at = free.find({depth, best}); at != free.end() && at->first == depth; ++at) {
    if (++looked_at > kLookAt) break;
    const bool fewer = nodes_[at->second].children.size() < nodes_[best].children.size();
    if (fewer && Fits(at->second, wanted)) best = at->second;
  }
  return best;
}

uint32_t Placement::Choose(const Wanted& wanted) const {
  const uint32_t height = Height();
  const auto among_own_switch = [&] {
    if (const uint32_t own = FirstIn(wanted.group, wanted, height); own != kNobody) return own;
    // Another one of that switch, or the first, beside the head.
    if (head_.children.size() + head_.kept < fanout_ && Fits(kHeadIndex, wanted)) return kHeadIndex;
    if (const uint32_t own = FirstIn(wanted.group, wanted, height + kSlack); own != kNobody) {
      return own;
    }
    for (uint32_t group = groups_[wanted.group].above; group != 0; group = groups_[group].above) {
      const uint32_t near = LeastUsedIn(group, wanted, height + kSlack);
      if (near != kNobody) return near;
    }
    return LeastUsedIn(0, wanted, height + kSlack);
  };
  const uint32_t chosen = wanted.group == 0 ? FirstIn(0, wanted, height) : among_own_switch();
  return chosen != kNobody ? chosen : FirstIn(0, wanted, UINT32_MAX);
}

// A node without children from below `index`, of the same switch if there is one: a child, which is
// to get another parent anyway, or else the deepest.
uint32_t Placement::Successor(uint32_t index) const {
  const uint32_t group = nodes_[index].group;
  uint32_t best = kNobody;
  std::tuple<bool, bool, uint32_t> best_score;
  std::vector<uint32_t> below = nodes_[index].children;
  while (!below.empty()) {
    const uint32_t at = below.back();
    below.pop_back();
    const Node& node = nodes_[at];
    below.insert(below.end(), node.children.begin(), node.children.end());
    const std::tuple score(node.parent == index, node.group == group, node.depth);
    if (!node.children.empty() || (best != kNobody && score <= best_score)) continue;
    best = at;
    best_score = score;
  }
  return best;
}

// --- The tree ---

void Placement::SetFree(uint32_t index, bool free) {
  const Node& node = Of(index);
  for (uint32_t group = node.group;; group = groups_[group].above) {
    if (free) {
      groups_[group].free.emplace(node.depth, index);
    } else {
      groups_[group].free.erase({node.depth, index});
    }
    if (group == 0) return;
  }
}

// Notes whether the node has a place for a child.
void Placement::UpdateFree(uint32_t index) {
  const Node& node = Of(index);
  SetFree(index, Present(index) && node.children.size() + node.kept < fanout_);
}

void Placement::Attach(uint32_t index, uint32_t parent) {
  nodes_[index].parent = parent;
  Of(parent).children.push_back(index);
  UpdateFree(parent);
}

// Its parent is still what it was.
void Placement::Detach(uint32_t index) {
  const uint32_t parent = nodes_[index].parent;
  std::vector<uint32_t>& children = Of(parent).children;
  children.erase(std::find(children.begin(), children.end(), index));
  UpdateFree(parent);
}

void Placement::SetDepths(uint32_t index, uint32_t depth) {
  Node& node = nodes_[index];
  SetFree(index, false);
  node.depth = depth;
  UpdateFree(index);
  for (const uint32_t child : node.children) SetDepths(child, depth + 1);
}

}  // namespace sonde::tree
