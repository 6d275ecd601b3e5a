// Which index each node of the step has, and how many nodes the step is expected to have.
//
// A node is known by the job of its het component and its number in there. A daemon that was
// started anew on a node gets an index of its own, which takes the place of the one before.
// Components register each with their own number of nodes; together they are the step.
//
// Thread safety: none; the loop's thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/job.h"
#include "daemon/message/message.h"

namespace sonde::head {

class Registrations {
 public:
  explicit Registrations(uint32_t expected) : expected_(expected) {}

  // Nodes that the step has, as far as is known.
  uint32_t expected() const { return expected_; }
  // Nodes that have registered, each once.
  size_t size() const { return registered_; }
  // The most indexes there may be: daemons that were started anew take new ones.
  size_t most() const { return size_t{4} * expected_ + 64; }

  // The newest index of a node; none: it has not registered.
  std::optional<uint32_t> IndexOf(const tree::Registration& who) const;
  // Gives the node this index; returns the index whose place that takes, if it had another.
  std::optional<uint32_t> Enter(const tree::Registration& who, uint32_t index);
  // Counts what the node says of its component's size. True if more nodes are expected now.
  bool Expect(const tree::Registration& who);
  // The nodes that another head knew.
  void Inherit(const JobDescription& job);

 private:
  struct Component {
    uint32_t nodes = 0;
    std::unordered_map<uint32_t, uint32_t> newest;  // number -> index
  };

  std::unordered_map<std::string, Component> components_;  // by job
  uint32_t expected_;
  size_t registered_ = 0;
};

}  // namespace sonde::head
