#include "daemon/head/registry/parents.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/link/address.h"

namespace sonde::head {

using tree::kHeadIndex;
using tree::Type;

Parents::Parents(Loop& loop, const Config& config, uint32_t expected, tree::ChildLinks& links,
                 Owner& owner)
    : loop_(loop),
      config_(config),
      links_(links),
      owner_(owner),
      placement_(config.fanout, expected),
      fabric_(loop) {}

Parents::~Parents() { loop_.Cancel(home_timer_); }

void Parents::Add(std::string_view switches) {
  placement_.Add(switches);
  nodes_.emplace_back();
}

void Parents::OnBack(uint32_t index, std::string_view switches, uint32_t parent) {
  placement_.AddAgain(index, switches);
  Node& node = nodes_[index];
  const uint32_t told = std::exchange(node.parent, parent < nodes_.size() ? parent : kHeadIndex);
  node.asks = node.asks || node.parent != kHeadIndex;
  if (node.parent != kHeadIndex && node.parent != told) node.carrier.clear();
  // What the node was told last may have been lost, and so may its answer.
  if (SendsTo(node.parent, index)) AssignHead(index);
  node.listen_asked = !node.waiting.empty() && owner_.SendTo(index, Type::kListen, "");
}

void Parents::Remove(uint32_t index) {
  // The node's children ask by themselves; others that take its place, or theirs, are told.
  for (const uint32_t moved : placement_.Remove(index)) {
    if (nodes_[moved].asks && nodes_[moved].parent != index) {
      Assign(moved, placement_.Parent(moved));
    }
  }
  for (const uint32_t child : TakeWaiting(index)) Assign(child, placement_.Parent(child));
}

std::vector<uint32_t> Parents::TakeWaiting(uint32_t index) {
  std::vector<uint32_t> waiting = std::exchange(nodes_[index].waiting, {});
  std::erase_if(waiting, [&](uint32_t child) { return nodes_[child].wanted != index; });
  return waiting;
}

// Whether `node` sends to `other`, directly or through others, as far as they were told.
bool Parents::SendsTo(uint32_t node, uint32_t other) const {
  for (size_t steps = 0; node != kHeadIndex && steps < nodes_.size(); ++steps) {
    if (node == other) return true;
    node = nodes_[node].parent;
  }
  return false;
}

void Parents::OnWantParent(uint32_t index, std::string_view payload) {
  ByteReader r(payload);
  uint64_t failed = payload.empty() ? kHeadIndex : r.Varint();
  if (failed > kHeadIndex) return;
  // Of a parent that is not known here nothing is kept: an acting head may not know it yet.
  if (failed >= nodes_.size()) failed = kHeadIndex;
  nodes_[index].asks = true;
  uint32_t parent = placement_.Parent(index);
  if (failed != kHeadIndex) {
    homecoming_.OnFailed(static_cast<uint32_t>(failed), Clock::System().Monotonic());
  }
  if (failed != kHeadIndex && parent == failed) {
    const uint32_t avoid[] = {parent};
    parent = placement_.Move(index, avoid);
    BringHome();
  }
  Assign(index, parent);
}

void Parents::BringHome() {
  if (home_timer_ != 0 || placement_.away().empty()) return;
  home_timer_ = loop_.After(kSecond, [this] {
    home_timer_ = 0;
    for (const uint32_t node : homecoming_.Due(Clock::System().Monotonic())) {
      Assign(node, placement_.Parent(node));
    }
    BringHome();
  });
}

void Parents::Assign(uint32_t child, uint32_t parent) {
  // A parent that moved up from below the child may still send to it: they would form a ring.
  if (parent == kHeadIndex || SendsTo(parent, child)) return AssignHead(child);
  nodes_[child].wanted = parent;
  Node& node = nodes_[parent];
  if (!node.address.empty()) return Tell(child, parent, node.address);
  if (std::find(node.waiting.begin(), node.waiting.end(), child) == node.waiting.end()) {
    node.waiting.push_back(child);
  }
  if (!std::exchange(node.listen_asked, true)) owner_.SendTo(parent, Type::kListen, "");
}

void Parents::AssignHead(uint32_t child) {
  nodes_[child].wanted = kHeadIndex;
  tree::FabricOptions options;
  options.provider = config_.provider;
  options.interface = config_.interface;
  options.local_address = local_host_;
  options.ports = tree::PortsOf(config_.port_range);
  tree::ChildLinks::MakeRoom(config_.fanout, options);
  fabric_.With(options, [this, child](const Result<tree::Fabric*>& fabric) {
    Listen(fabric);
    const Node& node = nodes_[child];
    if (node.wanted != kHeadIndex) return;
    if (fabric_address_.empty() && node.parent == kHeadIndex) return;
    Tell(child, kHeadIndex, fabric_address_);
  });
}

void Parents::OnListening(uint32_t index, std::string_view payload) {
  tree::Listening answer;
  if (!Decode(payload, answer).ok()) return;
  Node& node = nodes_[index];
  if (answer.address.empty()) {
    return owner_.AddNodeNote(index,
                              fmt::format("cannot listen for children: {}; their connections to "
                                          "the head serve",
                                          answer.error));
  }
  node.address = answer.address;
  // Meanwhile this node may have been told to send to one of them.
  for (const uint32_t child : TakeWaiting(index)) Assign(child, index);
}

void Parents::Tell(uint32_t child, uint32_t parent, const std::string& address) {
  if (owner_.SendTo(child, Type::kParent, Encode(tree::ParentAddress{parent, address}))) {
    Node& node = nodes_[child];
    node.parent = parent;
    // Without an address the control connection serves.
    node.carrier = address.empty() ? std::string(tree::SocketFabric::kProvider)
                                   : tree::Fabric::CarrierOf(address, config_.provider);
    if (node.carrier != tree::SocketFabric::kProvider) carriers_.insert(node.carrier);
    log::Debug("node {} is told to send to {}", child,
               parent == kHeadIndex ? "the head" : fmt::format("node {}", parent));
  }
}

std::string Parents::Carriers() const {
  std::string carriers(tree::SocketFabric::kProvider);
  for (const std::string& carrier : carriers_) carriers += ", " + carrier;
  return carriers;
}

void Parents::Listen(const Result<tree::Fabric*>& fabric) {
  if (std::exchange(fabric_asked_, true)) return;
  const Result<std::string> address =
      fabric.ok() ? links_.Listen(**fabric, kHeadIndex, config_.fanout) : fabric.status();
  if (address.ok()) {
    fabric_address_ = *address;
  } else {
    // Hosts where srun runs often lack the nodes' fabric: the nodes' connections to the head serve.
    log::Info("cannot listen for children: {}; their connections serve",
              address.status().message());
  }
}

}  // namespace sonde::head
