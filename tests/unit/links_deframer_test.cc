#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/link/link.h"

namespace sonde::tree {
namespace {

struct Collected {
  std::vector<std::string> messages;
  Status status;
};

Collected FeedInPieces(Deframer& deframer, std::string_view bytes, size_t piece) {
  Collected seen;
  while (!bytes.empty() && seen.status.ok()) {
    seen.status =
        deframer.Feed(bytes.substr(0, piece), [&](uint8_t type, std::string_view payload) {
          seen.messages.push_back(static_cast<char>(type) + std::string(payload));
          return true;
        });
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return seen;
}

TEST(Deframer, MessagesAreTheSameHoweverTheBytesAreCut) {
  std::string bytes;
  const std::vector<std::string> expected = {"a", "bhello", "c" + std::string(300, 'x'), "d", "e1"};
  for (const std::string& m : expected)
    AppendMessage(static_cast<uint8_t>(m[0]), m.substr(1), bytes);
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    Deframer deframer;
    const Collected seen = FeedInPieces(deframer, bytes, piece);
    ASSERT_TRUE(seen.status.ok());
    ASSERT_EQ(seen.messages, expected) << "pieces of " << piece;
  }
}

TEST(Deframer, RefusesLengthsOutsideItsBoundBeforeTheBytesCome) {
  for (const std::string& start :
       {std::string("\0\0\0\0\1", 5), std::string("\x01\x10\0\0\1", 5), std::string(5, '\xff')}) {
    Deframer deframer;
    EXPECT_EQ(FeedInPieces(deframer, start, 1).status.code(), Code::kCorrupt);
  }
}

TEST(Deframer, ABoundThatIsRaisedHoldsForTheNextMessage) {
  std::string bytes;
  AppendMessage(1, "proof", bytes);
  AppendMessage(2, std::string(kMaxUnprovenMessage, 'x'), bytes);
  Deframer deframer;
  int seen = 0;
  const Status status = deframer.Feed(bytes, [&](uint8_t, std::string_view) {
    deframer.SetMaxMessage(kMaxMessage);
    return ++seen > 0;
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(seen, 2);
}

TEST(Deframer, MayBeDestroyedByTheReceiver) {
  std::string bytes;
  AppendMessage(1, "first", bytes);
  AppendMessage(1, "second", bytes);
  for (const size_t first : {size_t{7}, bytes.size()}) {
    auto deframer = std::make_unique<Deframer>();
    std::string seen;
    const auto take = [&](uint8_t, std::string_view payload) {
      deframer.reset();
      seen += payload;
      return false;
    };
    ASSERT_TRUE(deframer->Feed(std::string_view(bytes).substr(0, first), take).ok());
    if (deframer) {
      ASSERT_TRUE(deframer->Feed(std::string_view(bytes).substr(first), take).ok());
    }
    EXPECT_EQ(seen, "first");
  }
}

}  // namespace
}  // namespace sonde::tree
