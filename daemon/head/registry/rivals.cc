#include "daemon/head/registry/rivals.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/link/send.h"
#include "daemon/message/places.h"

namespace sonde::head {

using tree::Type;

Rivals::~Rivals() {
  for (auto& [node, probe] : probes_) Close(probe);
}

void Rivals::Watch(const tree::Place& place) {
  const uint32_t node = place.index;
  Forget(node);
  if (probes_.size() >= kMost) {
    const auto oldest = std::min_element(
        probes_.begin(), probes_.end(),
        [](const auto& a, const auto& b) { return a.second.since < b.second.since; });
    Forget(oldest->first);
  }
  Probe& probe = probes_[node];
  probe.place = place;
  probe.since = ++watched_;
  Try(probe);
}

void Rivals::WatchAll(std::string_view places) {
  for (const tree::Place& place : tree::PlacesOf(places)) Watch(place);
}

void Rivals::Forget(uint32_t node) {
  const auto probe = probes_.find(node);
  if (probe == probes_.end()) return;
  Close(probe->second);
  probes_.erase(probe);
}

void Rivals::Close(Probe& probe) {
  loop_.Cancel(std::exchange(probe.timer, 0));
  probe.handshake.reset();
  tree::DestroyLater(loop_, std::move(probe.link));
}

void Rivals::TryLater(Probe& probe) {
  Close(probe);
  probe.timer = loop_.After(kPause, [this, &probe] {
    probe.timer = 0;
    Try(probe);
  });
}

void Rivals::Try(Probe& probe) {
  const tree::Place& place = probe.place;
  const uint32_t node = place.index;
  Result<std::unique_ptr<tree::SocketLink>> link =
      tree::SocketLink::Connect(loop_, place.host, place.port);
  if (!link.ok()) return TryLater(probe);
  probe.link = *std::move(link);
  probe.link->SetHandler(
      {.message = [this, node](uint8_t type,
                               std::string_view payload) { OnMessage(node, type, payload); },
       .closed = [this, &probe](const Status&) { TryLater(probe); }});
  // What a registration would say is never sent.
  probe.handshake = std::make_unique<tree::ConnectingHandshake>(
      key_,
      tree::Channel{.purpose = tree::Channel::Purpose::kControl, .acceptor = node, .address = ""},
      tree::Registration());
  tree::Send(*probe.link, Type::kHello, probe.handshake->Hello());
  probe.timer = loop_.After(kConnect, [this, &probe] {
    probe.timer = 0;
    // Where the hello has gone out there is a connection, on which an answer may come at any time.
    if (probe.link != nullptr && probe.link->queued() != 0) {
      Close(probe);
      Try(probe);
    }
  });
}

void Rivals::OnMessage(uint32_t node, uint8_t type, std::string_view payload) {
  const auto probe = probes_.find(node);
  if (probe == probes_.end() || probe->second.handshake == nullptr) return;
  if (!probe->second.handshake->OnMessage(type, payload).ok()) return TryLater(probe->second);
  const tree::Place place = probe->second.place;
  Forget(node);
  const Found found = found_;
  found(place);
}

}  // namespace sonde::head
