// What a gateway may say to the head, and the head to a gateway; and the lists of hosts by which
// nodes find gateways, which come of the environment.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/first_hosts.h"
#include "core/text/hostlist.h"
#include "daemon/link/via_links.h"
#include "daemon/loop.h"
#include "daemon/node/links/gateway.h"
#include "tests/fuzz/no_link.h"
#include "tests/fuzz/try_decode.h"

namespace {

using namespace sonde;
using namespace sonde::tree;

// Messages, each a byte of its type and one of its length in front of it. The first byte says what
// the head does with those that come.
void TryHead(std::string_view bytes) {
  Loop loop;
  NoLink control;
  const bool keeps = !bytes.empty() && (bytes[0] & 8) != 0;
  std::vector<std::unique_ptr<Link>> links;
  ViaLinks via(loop, control, [&](const Registration&, std::unique_ptr<Link> link) {
    if (!keeps) return;
    links.push_back(std::move(link));
    links.back()->SetMaxMessage(kMaxUnprovenMessage);
    links.back()->SetHandler(
        {[&, raw = links.back().get()](uint8_t type, std::string_view payload) {
           (void)raw->Send(type, payload).ok();
         },
         [](const Status&) {}});
  });
  while (bytes.size() >= 2) {
    const auto type = static_cast<Type>(static_cast<uint8_t>(bytes[0]) % 8 + 57);
    const size_t length = static_cast<uint8_t>(bytes[1]);
    bytes.remove_prefix(2);
    if (!via.OnMessage(type, bytes.substr(0, length)).ok()) break;
    bytes.remove_prefix(std::min(length, bytes.size()));
  }
  via.Lose();
  loop.Post([&] { loop.Stop(); });
  loop.Run();
}

void TryGateway(std::string_view bytes) {
  Loop loop;
  node::Gateway gateway(loop, {}, 1, [] {});
  gateway.OnHeadMessage(Type::kVia, bytes);
  gateway.OnHeadMessage(Type::kViaClose, bytes);
}

// The hosts of a beginning are the first ones of the list.
void TryHosts(std::string_view list) {
  const auto all = ExpandHosts(list, 64);
  if (all.has_value() && all->size() > 64) __builtin_trap();
  for (size_t most = 0; most < list.size(); most += 7) {
    const std::string first = FirstHosts(list, most);
    if (first.size() > most + 1) __builtin_trap();
    if (!all.has_value()) continue;
    const auto some = ExpandHosts(first, 64);
    if (!some.has_value() || some->size() > all->size()) __builtin_trap();
    for (size_t i = 0; i < some->size(); ++i) {
      if ((*some)[i] != (*all)[i]) __builtin_trap();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      TryDecode<ViaOpen>(bytes);
      break;
    case 1:
      TryHead(bytes);
      break;
    case 2:
      TryGateway(bytes);
      break;
    default:
      TryHosts(bytes);
  }
  return 0;
}
