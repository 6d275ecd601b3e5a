// Everything a peer of the tree may send: every message's decoder, frames, and the launch message.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/launch_message.h"
#include "daemon/link/libfabric/socket_fabric.h"
#include "daemon/link/trust/handshake.h"
#include "daemon/message/message.h"
#include "daemon/message/places.h"
#include "daemon/tree/children/relay.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/moments_message.h"
#include "tests/fuzz/no_link.h"
#include "tests/fuzz/try_decode.h"

namespace {

using namespace sonde;
using namespace sonde::tree;

struct Alone final : Relay::Owner {
  void OnBlock(BlockMessage /*block*/) override {}
  void BeforeFrames() override {}
  void OnAhead() override {}
};

// A frame, by itself and through what a parent does with it; what it makes of it can be sent on.
void TryFrames(std::string_view bytes) {
  static Loop loop;
  QueryFanout queries(loop);
  Alone alone;
  Relay relay(loop, queries, kSecond, Clock::System(), alone);
  relay.SetNode(1);
  NoLink link;
  relay.children().Add(link, 7);
  std::vector<Series> series(8);
  for (size_t i = 0; i < series.size(); ++i) {
    series[i].metric.name = std::string(1, char('a' + i));
    series[i].metric.spread = i % 2 == 1;
    if (i > 4) series[i].metric.type = MetricType::kCounter;
  }
  const std::string schema = PackSchema(*Schema::Make(std::move(series)));
  for (char stream = 0; stream < static_cast<char>(kStreams); ++stream) {
    if (!relay.children().OnMessage(link, Type::kSchema, stream + schema).ok()) __builtin_trap();
  }
  std::string message;
  ByteWriter(message).Text(bytes);
  for (int i = 0; i < 3; ++i) {
    if (!relay.children().OnMessage(link, Type::kFrame, message).ok()) break;
    relay.OnChildrenChanged();
  }
  relay.children().HandOnLost(INT64_MAX);
  relay.SendRest();
  NoLink up;
  relay.uplink().Use(&up, false);
  relay.OnAck(relay.uplink().last_number(), 0);
  if (!relay.uplink().frames_delivered()) __builtin_trap();
}

// Where a child of plain sockets is told to connect.
void TryAddress(std::string_view bytes) {
  ParentAddress parent;
  if (!Decode(bytes, parent).ok()) return;
  const auto target = SocketFabric::Parse(parent.address);
  if (target.ok() && (target->port == 0 || target->host.empty())) __builtin_trap();
}

// What a node's daemon tells its acting head of others.
void TryPlaces(std::string_view bytes) {
  const std::string text = ToText(PlacesOf(bytes));
  if (ToText(PlacesOf(text)) != text) __builtin_trap();
}

// What a parent makes of two parts can be sent again.
void TryMerge(std::string_view bytes) {
  MomentsMessage message;
  if (!Decode(bytes, message).ok()) return;
  collect::Moments merged;
  Merge(message.moments, merged);
  Merge(message.moments, merged);
  MomentsMessage again;
  if (!Decode(Encode(MomentsMessage{1, merged}), again).ok()) __builtin_trap();
  if (again.moments.annotations.size() != message.moments.annotations.size()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 20) {
    case 0:
      TryDecode<Hello>(bytes);
      break;
    case 1:
      TryDecode<AnsweredMessage>(bytes);
      break;
    case 2:
      TryDecode<Registration>(bytes);
      break;
    case 3:
      TryDecode<Exits>(bytes);
      break;
    case 4:
      TryDecode<Welcome>(bytes);
      break;
    case 5:
      TryDecode<Listening>(bytes);
      TryDecode<Successors>(bytes);
      TryDecode<StandingBy>(bytes);
      break;
    case 6:
      TryDecode<ParentAddress>(bytes);
      TryAddress(bytes);
      break;
    case 7:
      TryDecode<Bye>(bytes);
      break;
    case 8:
      TryDecode<BlockMessage>(bytes);
      (void)DecodeEach<BlockMessage>(bytes, [](const BlockMessage&) {}).ok();
      break;
    case 9:
      TryDecode<BlockAck>(bytes);
      (void)DecodeEach<BlockAck>(bytes, [](const BlockAck&) {}).ok();
      break;
    case 10:
      TryDecode<QueryMessage>(bytes);
      break;
    case 11:
      TryDecode<ReplyMessage>(bytes);
      break;
    case 12:
      TryFrames(bytes);
      break;
    case 13:
      (void)ParseLaunchMessage(bytes).ok();
      TryPlaces(bytes);
      break;
    case 14:
      TryDecode<MomentsMessage>(bytes);
      TryMerge(bytes);
      break;
    case 15:
      TryDecode<MomentsAck>(bytes);
      break;
    case 16:
      TryDecode<AskMessage>(bytes);
      break;
    case 17:
      TryDecode<AnswerMessage>(bytes);
      TryDecode<JoinedMessage>(bytes);
      break;
    case 19:
      TryDecode<BlockBudget>(bytes);
      break;
    default: {
      static const StepKey key{};
      AcceptingHandshake handshake(key, {});
      (void)handshake.OnMessage(data[0] >> 4, bytes).ok();
    }
  }
  return 0;
}
