#include "daemon/head/rendezvous.h"

#include <utility>

namespace sonde::head {

Rendezvous::Rendezvous(Loop& loop, const StepKey& key, uint32_t place, Owner& owner)
    : loop_(loop),
      owner_(owner),
      acceptor_(loop, key, {tree::Channel::Purpose::kControl, place, ""},
                [this](const tree::Registration& who, std::unique_ptr<tree::Link> link) {
                  owner_.OnProven(who, std::move(link));
                }) {}

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
