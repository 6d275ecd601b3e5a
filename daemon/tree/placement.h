// The tree's shape: who is whose child.
//
// The head asks it for a place whenever a node comes, goes, or cannot reach its parent. Nodes are
// numbered in the order in which they come, as everywhere; kHeadIndex is the head. Where Slurm
// tells the switches of the nodes, those under one switch hang under one of them as far as the
// fanout permits; else they fill the tree by index: the first `fanout` nodes are the head's
// children, the next ones the first node's, and so on.
//
// What holds at any time:
//   - nobody, the head included, has more than `fanout` children, and only present nodes have any;
//   - every present node reaches the head over present nodes;
//   - a new node's parent came before it;
//   - a new node is at most one level deeper than the lowest possible tree of so many nodes is high
//     (so many: those that are present, or those that are expected if these are more);
//   - Remove makes no node deeper.
//
// A node that could not reach its parent is away from home until Return: its place there is kept
// for it, so that a tree which many have left for a while gets its shape back.
//
// Add and Remove take microseconds with 100,000 nodes; memory is about 150 bytes a node and level
// of switches.
//
// Thread safety: none; the loop's thread only.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/message/message.h"

namespace sonde::tree {

// The switches of a node from the top down, "s0.s4": SLURM_TOPOLOGY_ADDR without what is no switch
// (or block), as SLURM_TOPOLOGY_ADDR_PATTERN says. "" if it does not tell any. Names beyond
// kMaxTopology bytes and levels beyond kMaxSwitches are left out, at the top.
inline constexpr size_t kMaxTopology = 256;
inline constexpr size_t kMaxSwitches = 8;
std::string SwitchesOf(std::string_view address, std::string_view pattern);

class Placement {
 public:
  // `fanout`: at least 2. `expected`: nodes of the step, as far as known.
  explicit Placement(uint32_t fanout, uint32_t expected = 0);

  void Expect(uint32_t nodes) { expected_ = nodes; }
  // A node comes; `switches` as SwitchesOf gives them. Returns its index: 0, 1, 2, ...
  uint32_t Add(std::string_view switches);
  // One that was removed is back and gets a place as a new one does. Nothing happens if it is
  // there.
  void AddAgain(uint32_t index, std::string_view switches);
  // A node leaves or is lost: it takes no more children. Those it had, and at most one node more,
  // get other parents; returned are the nodes whose Parent is another now, parents before their
  // children. One of its children, or a node without children from below it, takes its place with
  // all its children, so the tree keeps its shape. Its own Parent stays as it was: it may still
  // have something to deliver. Nothing happens if it is gone already.
  std::vector<uint32_t> Remove(uint32_t index);
  // A node cannot reach its parent, or any of `avoid`, though they are there: another parent, which
  // is returned. If there is none its parent remains.
  uint32_t Move(uint32_t index, std::span<const uint32_t> avoid);
  // The nodes that Move has placed elsewhere, and where each belongs.
  const std::set<uint32_t>& away() const { return away_; }
  uint32_t Home(uint32_t index) const { return nodes_[index].home; }
  // It goes home. False, and nothing happens, if its home is below it now.
  bool Return(uint32_t index);

  // kHeadIndex or a node that came before, unless it took somebody's place.
  uint32_t Parent(uint32_t index) const { return nodes_[index].parent; }
  std::span<const uint32_t> Children(uint32_t index) const { return Of(index).children; }
  // 1 for the head's children.
  uint32_t Depth(uint32_t index) const { return Of(index).depth; }
  bool Present(uint32_t index) const { return index == kHeadIndex || nodes_[index].present; }
  size_t size() const { return nodes_.size(); }  // all that ever came
  size_t present() const { return present_; }

 private:
  // Switches, by the whole way to them; group 0 has all nodes.
  struct Group {
    uint32_t above = 0;
    uint32_t level = 0;
    std::set<std::pair<uint32_t, uint32_t>> free;  // depth and index of nodes with free places
  };
  struct Node {
    uint32_t parent = kHeadIndex;
    uint32_t home = kHeadIndex;  // the parent, unless it is away
    uint32_t kept = 0;           // places for children that are away
    uint32_t depth = 0;
    uint32_t group = 0;  // of its lowest switch
    bool present = true;
    std::vector<uint32_t> children;
  };
  struct Wanted;

  Node& Of(uint32_t index) { return index == kHeadIndex ? head_ : nodes_[index]; }
  const Node& Of(uint32_t index) const { return index == kHeadIndex ? head_ : nodes_[index]; }
  uint32_t GroupOf(std::string_view switches);
  bool IsUnder(uint32_t index, uint32_t ancestor) const;
  uint32_t Height() const;
  bool Fits(uint32_t index, const Wanted& wanted) const;
  uint32_t Choose(const Wanted& wanted) const;
  uint32_t FirstIn(uint32_t group, const Wanted& wanted, uint32_t deepest) const;
  uint32_t LeastUsedIn(uint32_t group, const Wanted& wanted, uint32_t deepest) const;
  uint32_t Successor(uint32_t index) const;
  void SetFree(uint32_t index, bool free);
  void UpdateFree(uint32_t index);
  void Place(uint32_t index, std::string_view switches);
  void Settle(uint32_t index, uint32_t home);
  void Attach(uint32_t index, uint32_t parent);
  void Detach(uint32_t index);
  void SetDepths(uint32_t index, uint32_t depth);

  const uint32_t fanout_;
  uint32_t expected_;
  size_t present_ = 0;
  Node head_;
  std::vector<Node> nodes_;
  std::set<uint32_t> away_;
  std::vector<Group> groups_;
  std::unordered_map<std::string, uint32_t> group_of_;
};

}  // namespace sonde::tree
