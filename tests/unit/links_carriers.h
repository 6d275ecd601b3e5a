// The carriers behind one face, for tests that hold for every link.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/link/libfabric/fabric.h"
#include "daemon/link/libfabric/socket_fabric.h"
#include "daemon/link/listener.h"
#include "daemon/link/local_link.h"
#include "daemon/link/socket_link.h"
#include "daemon/link/trust/sealed_link.h"
#include "daemon/loop.h"

namespace sonde::tree {

// Runs the loop until `done`, looked at before every sleep. False after 20 s.
inline bool RunUntil(Loop& loop, const std::function<bool()>& done) {
  bool late = false;
  const auto timer = loop.After(20 * kSecond, [&] { late = true; });
  bool reached = false;
  const auto check = loop.AddSleepCheck([&] {
    reached = reached || done();
    if (reached || late) loop.Stop();
    return true;
  });
  loop.Run();
  loop.RemoveSleepCheck(check);
  loop.Cancel(timer);
  return reached;
}

struct Message {
  uint8_t type;
  std::string payload;
  bool operator==(const Message&) const = default;
};

// A link with everything that it said.
struct End {
  std::unique_ptr<Link> link;
  std::vector<Message> messages;
  int closed = 0;
  Status why;

  void Own(std::unique_ptr<Link> l) {
    link = std::move(l);
    link->SetMaxMessage(kMaxMessage);
    link->SetHandler({[this](uint8_t type, std::string_view payload) {
                        messages.push_back({type, std::string(payload)});
                      },
                      [this](const Status& status) {
                        ++closed;
                        why = status;
                      }});
  }
};

class SocketCarrier {
 public:
  using Accepted = std::function<void(std::unique_ptr<Link>)>;
  static constexpr bool kProcesses = true;
  static constexpr uint64_t kIdleWakeups = 4;
  static constexpr size_t kOverhead = 0;  // what a message is longer on it

  explicit SocketCarrier(Loop& loop) : loop_(loop) {}
  std::string Listen(Accepted accepted) {
    auto listener = Listener::Open(loop_, "127.0.0.1", {0, 0}, std::move(accepted));
    EXPECT_TRUE(listener.ok()) << listener.status().message();
    listener_ = *std::move(listener);
    return std::to_string(listener_->port());
  }
  std::unique_ptr<Link> Connect(const std::string& address) {
    auto link = SocketLink::Connect(loop_, "127.0.0.1", static_cast<uint16_t>(std::stoi(address)));
    EXPECT_TRUE(link.ok()) << link.status().message();
    return *std::move(link);
  }

 private:
  Loop& loop_;
  std::unique_ptr<Listener> listener_;
};

// Opens a fabric and waits for it.
inline Result<std::unique_ptr<Fabric>> OpenFabric(Loop& loop, FabricOptions options) {
  Result<std::unique_ptr<Fabric>> opened(Status(Code::kTimeout, "not opened"));
  bool done = false;
  auto call = Fabric::Open(loop, std::move(options), [&](Result<std::unique_ptr<Fabric>> fabric) {
    opened = std::move(fabric);
    done = true;
  });
  if (!call.ok()) return call.status();
  RunUntil(loop, [&] { return done; });
  return opened;
}

// Connected endpoints.
struct OverMsg {
  static FabricOptions Options() {
    return {.provider = "tcp", .local_address = "127.0.0.1", .endpoints = {Endpoint::kMsg}};
  }
  static constexpr uint64_t kIdleWakeups = 4;
};

// Reliable datagrams of a provider without a descriptor that can be waited on. From libfabric 1.18
// on `net` is a part of `tcp`, with a descriptor.
struct OverPolledRdm {
  static FabricOptions Options() {
    return {.provider = "net,tcp",
            .local_address = "127.0.0.1",
            .endpoints = {Endpoint::kRdm},
            .silence = kSecond};
  }
  // 50 until it is found out, and then 15 in 50 ms, ever more seldom.
  static constexpr uint64_t kIdleWakeups = 80;
};

// Reliable datagrams of a provider with one. Its queues are for thousands of peers by default.
struct OverRdm {
  static FabricOptions Options() {
    setenv("FI_OFI_RXM_MSG_RX_SIZE", "16", 0);
    setenv("FI_OFI_RXM_MSG_TX_SIZE", "16", 0);
    return {.provider = "tcp;ofi_rxm",
            .local_address = "127.0.0.1",
            .endpoints = {Endpoint::kRdm},
            .silence = kSecond};
  }
  // Over another provider. One of shm's endpoints has its address as its name on the whole machine:
  // each process has an address of its own, or tests beside each other would have the same.
  static FabricOptions Options(const std::string& provider) {
    FabricOptions options = Options();
    options.provider = provider;
    if (provider == "shm") {
      const pid_t pid = getpid();
      options.local_address =
          fmt::format("127.{}.{}.{}", 1 + (pid >> 16) % 254, (pid >> 8) % 256, pid % 256);
    }
    return options;
  }
  static constexpr uint64_t kIdleWakeups = 8;
};

template <typename Over>
class FabricCarrier {
 public:
  using Accepted = std::function<void(std::unique_ptr<Link>)>;
  static constexpr bool kProcesses = true;
  static constexpr uint64_t kIdleWakeups = Over::kIdleWakeups;
  static constexpr size_t kOverhead = 0;

  explicit FabricCarrier(Loop& loop) {
    auto fabric = OpenFabric(loop, Over::Options());
    EXPECT_TRUE(fabric.ok()) << fabric.status().message();
    fabric_ = *std::move(fabric);
  }
  std::string Listen(Accepted accepted) {
    auto address = fabric_->Listen(std::move(accepted));
    EXPECT_TRUE(address.ok()) << address.status().message();
    return *address;
  }
  std::unique_ptr<Link> Connect(const std::string& address) {
    auto link = fabric_->Connect(address);
    EXPECT_TRUE(link.ok()) << link.status().message();
    return *std::move(link);
  }

 private:
  std::unique_ptr<Fabric> fabric_;
};

class SocketFabricCarrier {
 public:
  using Accepted = std::function<void(std::unique_ptr<Link>)>;
  static constexpr bool kProcesses = true;
  static constexpr uint64_t kIdleWakeups = 4;
  static constexpr size_t kOverhead = 0;

  explicit SocketFabricCarrier(Loop& loop) : fabric_(loop, "127.0.0.1") {}
  std::string Listen(Accepted accepted) {
    auto address = fabric_.Listen(std::move(accepted));
    EXPECT_TRUE(address.ok()) << address.status().message();
    return *address;
  }
  std::unique_ptr<Link> Connect(const std::string& address) {
    auto link = fabric_.Connect(address);
    EXPECT_TRUE(link.ok()) << link.status().message();
    return *std::move(link);
  }

 private:
  SocketFabric fabric_;
};

class LocalCarrier {
 public:
  using Accepted = std::function<void(std::unique_ptr<Link>)>;
  static constexpr bool kProcesses = false;
  static constexpr uint64_t kIdleWakeups = 4;
  static constexpr size_t kOverhead = 0;

  explicit LocalCarrier(Loop& loop) : loop_(loop) {}
  std::string Listen(Accepted accepted) {
    accepted_ = std::move(accepted);
    return "local";
  }
  std::unique_ptr<Link> Connect(const std::string&) {
    auto [here, there] = LocalLink::MakePair(loop_, "client", "server");
    accepted_(std::move(there));
    return std::move(here);
  }

 private:
  Loop& loop_;
  Accepted accepted_;
};

// As two sides that have proved the key to each other.
inline std::unique_ptr<SealedLink> SealOver(std::unique_ptr<Link> link, bool connecting,
                                            uint64_t number = 0) {
  const SealKey keys[2] = {{{1, 2}, {3}}, {{4, 5}, {6}}};
  return std::make_unique<SealedLink>(std::move(link),
                                      LinkSeals{SealedStream(keys[connecting ? 0 : 1], number),
                                                SealedStream(keys[connecting ? 1 : 0], number)});
}

// The same carriers, with all that they carry sealed.
template <typename Carrier>
class Sealing {
 public:
  using Accepted = std::function<void(std::unique_ptr<Link>)>;
  static constexpr bool kProcesses = Carrier::kProcesses;
  static constexpr uint64_t kIdleWakeups = Carrier::kIdleWakeups;
  static constexpr size_t kOverhead = kSealOverhead;

  explicit Sealing(Loop& loop) : carrier_(loop) {}
  std::string Listen(Accepted accepted) {
    return carrier_.Listen([accepted = std::move(accepted)](std::unique_ptr<Link> link) {
      accepted(SealOver(std::move(link), false));
    });
  }
  std::unique_ptr<Link> Connect(const std::string& address) {
    return SealOver(carrier_.Connect(address), true);
  }

 private:
  Carrier carrier_;
};

}  // namespace sonde::tree
