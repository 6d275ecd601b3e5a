#include "daemon/head/rendezvous.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace sonde::head {

namespace {

// None of the nodes is to make room for another, but for those of steps that are larger than any.
size_t MostUnproven(uint32_t nodes) {
  constexpr size_t kMost = 16'384;
  return std::clamp<size_t>(nodes, tree::Acceptor::kMaxPending, kMost);
}

}  // namespace

Rendezvous::Rendezvous(Loop& loop, const StepKey& key, uint32_t index, Owner& owner, uint32_t nodes)
    : loop_(loop),
      owner_(owner),
      acceptor_(
          loop, key, tree::Channel{.acceptor = index, .address = ""},
          [this](const tree::Registration& who, std::unique_ptr<tree::Link> link) {
            owner_.OnProven(who, std::move(link));
          },
          MostUnproven(nodes)) {
  acceptor_.SetOtherRelease([this](const std::string& host, const Status& why) {
    if (std::exchange(other_release_told_, true)) return;
    owner_.OnOtherRelease(fmt::format(
        "a daemon at {} was not let in, and what it measured is missing: {}", host, why.message()));
  });
}

Status Rendezvous::Listen(UniqueFd socket) {
  Result<std::unique_ptr<tree::Listener>> listener = tree::Listener::Adopt(
      loop_, std::move(socket), [this](std::unique_ptr<tree::SocketLink> link) {
        if (!std::exchange(local_host_known_, true)) {
          owner_.OnLocalHost(tree::HostText(link->local_address()));
        }
        acceptor_.Take(std::move(link));
      });
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  return {};
}

}  // namespace sonde::head
