// Everything a peer of the tree may send: every message's decoder, frames, and the launch message.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "daemon/launch_message.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/handshake.h"
#include "daemon/tree/message.h"
#include "daemon/tree/moments_message.h"
#include "daemon/tree/tick_merger.h"

namespace {

using namespace sonde;
using namespace sonde::tree;

template <typename M>
void TryDecode(std::string_view bytes) {
  M message;
  // What decodes must encode, and decode to the same again.
  if (!Decode(bytes, message).ok()) return;
  M again;
  if (!Decode(Encode(message), again).ok() || Encode(again) != Encode(message)) __builtin_trap();
}

void TryFrames(std::string_view bytes) {
  FrameDecoder decoder;
  decoder.Reset(8);
  TickMerger merger(0, [](const Frame&, bool) {});
  const TickMerger::Id id = merger.AddContributor(0);
  std::vector<Series> series(8);
  for (size_t i = 0; i < series.size(); ++i) series[i].metric.name = std::string(1, char('a' + i));
  merger.SetSchema(id, Schema::Make(std::move(series)));
  for (int i = 0; i < 3; ++i) {
    if (const auto frame = decoder.Decode(bytes); frame.ok()) merger.Add(id, **frame);
  }
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
      TryDecode<Challenge>(bytes);
      break;
    case 2:
      TryDecode<Registration>(bytes);
      break;
    case 3:
      TryDecode<Proof>(bytes);
      break;
    case 4:
      TryDecode<Welcome>(bytes);
      break;
    case 5:
      TryDecode<Listening>(bytes);
      break;
    case 6:
      TryDecode<ParentAddress>(bytes);
      break;
    case 7:
      TryDecode<Bye>(bytes);
      break;
    case 8:
      TryDecode<BlockMessage>(bytes);
      break;
    case 9:
      TryDecode<BlockAck>(bytes);
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
      break;
    case 19:
      TryDecode<BlockBudget>(bytes);
      break;
    default: {
      static const StepKey key{};
      AcceptingHandshake handshake(key);
      (void)handshake.OnMessage(data[0] >> 4, bytes).ok();
    }
  }
  return 0;
}
