// The fabric links of a node's, or the head's, children: listens, lets those in that prove the key,
// and hands what they send to Children.
//
// A link that fails, is silent, or sends what may not be, is closed; the child goes on over its
// control connection. While children contribute, they are told once a second what has arrived.
//
// Thread safety: the loop's thread only.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "daemon/launch_message.h"
#include "daemon/link/libfabric/fabric.h"
#include "daemon/link/trust/acceptor.h"
#include "daemon/loop.h"
#include "daemon/tree/children/children.h"

namespace sonde::tree {

class ChildLinks {
 public:
  // Links that have not proved the key yet: at least so many, and as many as there may be children.
  // These may all come in one moment, and none of them is to make room for another.
  static constexpr size_t kLeastUnproven = 16;
  static constexpr size_t MostUnproven(size_t children) {
    return std::max(kLeastUnproven, children);
  }
  // So that a fabric has links for so many children however many strangers there are: for those
  // that are being accepted, those that have not proved the key, and one to the parent.
  static void MakeRoom(size_t children, FabricOptions& options);

  // The longest between two pulses: of ticks every second each brings one about, by PulseSoon.
  static constexpr Nanos kPulse = 1200 * kMillisecond;
  // Longer than a parent's: children are heard at each of their ticks.
  static constexpr Nanos kSilence = 3 * kSecond;

  // `changed` is called after whatever a child has sent, and when one is gone.
  ChildLinks(Loop& loop, const StepKey& key, Nanos period, Children& children,
             std::function<void()> changed);
  ~ChildLinks();

  // The address for that many children, or why there is none; the same again when called again.
  // `index`: of this node, or kHeadIndex.
  Result<std::string> Listen(Fabric& fabric, uint32_t index, size_t children);

  // After what a child has sent over a link that is not one of these.
  void Watch();
  // There is something to tell them: once what the loop has before it now is done, unless the last
  // pulse was only just.
  void PulseSoon();
  bool empty() const { return links_.empty(); }
  // They may join blocks from now on, and so may those that come: this node passes them on.
  void LetJoin();
  // Closes this one, if it is one of them.
  void Drop(Link& link);
  // Closes them all, and listens no more; what is on its way over them is lost.
  void Close();

 private:
  void OnProven(const Registration& who, std::unique_ptr<Link> link);
  void OnMessage(Link& link, uint8_t type, std::string_view payload);
  void PulseAfter(Nanos delay);
  void DropSilent(Nanos since);

  Loop& loop_;
  const StepKey key_;
  const Nanos silence_;
  Children& children_;
  std::function<void()> changed_;
  std::unique_ptr<Acceptor> acceptor_;
  Fabric* fabric_ = nullptr;  // that listens
  Result<std::string> address_ = Status(Code::kUnavailable, "not listening");
  std::unordered_map<Link*, std::unique_ptr<Link>> links_;
  Loop::TimerId pulse_timer_ = 0;
  Nanos pulsed_ = 0;  // monotonic
  bool join_ = false;
};

}  // namespace sonde::tree
