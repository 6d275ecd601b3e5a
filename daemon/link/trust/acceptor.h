// Accepted connections on their way to be trusted.
//
// Holds a bounded number of connections that have not proved the key yet, each for a bounded time,
// and hands over those that have, as links that seal. When there is no room for another, the
// address that has most of them loses its oldest connection, so that a crowd of strangers keeps out
// nobody but itself. Of IPv6 that is an address of the network of 64 bits that has most of them,
// for one stranger may have all of its addresses. A connection that fails is closed; the log gets
// one line a second at most, so a port scanner costs neither memory, descriptors nor log.
//
// Thread safety: the loop's thread only.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "daemon/launch_message.h"
#include "daemon/link/link.h"
#include "daemon/link/log_limit.h"
#include "daemon/link/trust/handshake.h"
#include "daemon/loop.h"

namespace sonde::tree {

class Acceptor {
 public:
  using Proven = std::function<void(const Registration& who, std::unique_ptr<Link> link)>;
  // Who says of himself, unproven, that he is of a release that this one does not work with.
  using OtherRelease = std::function<void(const std::string& host, const Status& why)>;

  // All nodes of a step may come at once, and from one address where one machine has them all.
  static constexpr size_t kMaxPending = 1024;
  static constexpr Nanos kPatience = 5 * kSecond;

  // `channel`: whose connections these are, and what for.
  Acceptor(Loop& loop, const StepKey& key, Channel channel, Proven proven,
           size_t max_pending = kMaxPending);
  ~Acceptor();

  // Where the port is known only once it takes connections.
  void SetAddress(std::string address) { channel_.address = std::move(address); }
  void SetOtherRelease(OtherRelease told) { other_release_ = std::move(told); }
  void Take(std::unique_ptr<Link> link);
  size_t pending() const { return pending_.size(); }

 private:
  struct Waits {
    Link* link;
    uint64_t number;  // the oldest has the lowest
  };
  using Crowd = std::list<Waits>;  // of one address, by age
  struct Network {
    size_t size = 0;                               // of all crowds
    std::unordered_map<std::string, Crowd> hosts;  // none is empty
  };
  struct Pending {
    std::unique_ptr<Link> link;
    AcceptingHandshake handshake;
    std::string host;
    Crowd::iterator place;
    Loop::TimerId timer = 0;
  };
  using Entry = std::unordered_map<Link*, Pending>::iterator;

  void MakeRoom();
  void OnMessage(Link* link, uint8_t type, std::string_view payload);
  void Refuse(Link* link, const Status& why);
  // Takes it out of all that is kept here.
  Pending Extract(Entry at);

  Loop& loop_;
  StepKey key_;
  Channel channel_;
  Proven proven_;
  OtherRelease other_release_;
  size_t max_pending_;
  std::unordered_map<Link*, Pending> pending_;
  std::unordered_map<std::string, Network> networks_;  // none is empty
  uint64_t came_ = 0;
  uint64_t refused_ = 0;
  LogLimit log_limit_;
};

}  // namespace sonde::tree
