// Accepted connections on their way to be trusted.
//
// Holds a bounded number of connections that have not proved the key yet, each for a bounded time,
// and hands over those that have. What fails is closed; the log gets one line a second at most, so
// a port scanner costs neither memory, descriptors nor log.
//
// Thread safety: the loop's thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "daemon/launch_message.h"
#include "daemon/loop.h"
#include "daemon/tree/handshake.h"
#include "daemon/tree/link.h"

namespace sonde::tree {

class Acceptor {
 public:
  using Proven = std::function<void(const Registration& who, std::unique_ptr<Link> link)>;

  Acceptor(Loop& loop, const StepKey& key, Proven proven);
  ~Acceptor();

  void Take(std::unique_ptr<Link> link);

  static constexpr size_t kMaxPending = 256;
  static constexpr Nanos kPatience = 5 * kSecond;

 private:
  struct Pending {
    std::unique_ptr<Link> link;
    AcceptingHandshake handshake;
    Loop::TimerId timer = 0;
  };
  void OnMessage(Link* link, uint8_t type, std::string_view payload);
  void Refuse(Link* link, const Status& why);

  Loop& loop_;
  StepKey key_;
  Proven proven_;
  std::unordered_map<Link*, Pending> pending_;
  uint64_t refused_ = 0;
  Nanos last_log_ = 0;
};

}  // namespace sonde::tree
