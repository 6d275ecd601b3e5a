// A node that passes on what other nodes and the head say to each other (daemon/link/via_links.h).
//
// It takes connections once the head has said that it may, on a port that the others know
// (gateway_plan.h), and lets those in that prove the key. When its own connection to the head is
// lost, it closes theirs: each finds the head, or who goes on in its place, by itself.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "daemon/launch_message.h"
#include "daemon/link/link.h"
#include "daemon/link/listener.h"
#include "daemon/link/trust/acceptor.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"

namespace sonde::node {

class Gateway {
 public:
  // `node`: this one's number in the step. `left`: called when the last of the others has gone.
  Gateway(Loop& loop, const StepKey& key, uint32_t node, std::function<void()> left);
  ~Gateway();

  // `head`: this node's connection to the head, which has said that others may come through it;
  // valid until OnHeadLost. At a numeric address of this machine, on the first port that is free.
  Status Open(tree::Link& head, const std::string& host, const std::vector<uint16_t>& ports);
  // A message of the head's about others.
  void OnHeadMessage(tree::Type type, std::string_view payload);
  void OnHeadLost();
  // This node goes: the others are told to look for another way, and nobody else is let in.
  void Leave();

  // 0: nobody is let in.
  uint16_t port() const { return listener_ == nullptr ? 0 : listener_->port(); }
  size_t connections() const { return links_.size(); }

 private:
  void OnProven(const tree::Registration& who, std::unique_ptr<tree::Link> link);
  void Up(uint64_t channel, uint8_t type, std::string_view payload);
  // False if the head does not take it now.
  bool Tell(tree::Type type, std::string_view payload);
  bool TellClosed();
  // `tell`: the head does not know it yet.
  void Close(uint64_t channel, bool tell);

  Loop& loop_;
  const StepKey key_;
  const uint32_t node_;
  std::function<void()> left_;
  tree::Link* head_ = nullptr;  // nullptr: nobody is let in
  std::unique_ptr<tree::Acceptor> acceptor_;
  std::unique_ptr<tree::Listener> listener_;
  uint64_t next_ = 0;  // channel; each connection to the head counts from 0
  std::unordered_map<uint64_t, std::unique_ptr<tree::Link>> links_;
  std::vector<uint64_t> untold_;  // channels that are closed, and the head has yet to hear it
};

}  // namespace sonde::node
