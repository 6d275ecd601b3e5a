// The record of what was sent: what is left of it after a kill at any byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "forward/record.h"
#include "profiles_fixture.h"

namespace sonde::forward {
namespace {

constexpr char kKey[] = "frost.123.0.5";

Destination To() { return *ParseDestination("http://h/api/v1/write?secret=1"); }

std::string Text(const TempDir& dir) {
  std::stringstream text;
  text << std::ifstream(dir.path() + "/forward/" + kKey + "@" + To().Id()).rdbuf();
  return text.str();
}

TEST(RecordTest, KnowsAfterwardsWhatWasTaken) {
  const TempDir dir;
  const Stream one{0, "os"}, two{kReducedNode, "a group"};
  {
    auto record = Record::Open(dir.path(), kKey, To());
    ASSERT_TRUE(record.ok()) << record.status().message();
    EXPECT_EQ(record->Mark(one), INT64_MIN);
    ASSERT_TRUE(record->Begin({{one, 10}, {two, 20}}).ok());
    ASSERT_TRUE(record->Taken(100, 2).ok());
    ASSERT_TRUE(record->Begin({{one, 30}}).ok());
    EXPECT_EQ(Record::Open(dir.path(), kKey, To()).status().code(), Code::kBusy);
  }
  auto record = Record::Open(dir.path(), kKey, To());
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->Mark(one), 10);
  EXPECT_EQ(record->Mark(two), 20);
  EXPECT_EQ(record->state().intent, (Marks{{one, 30}}));
  EXPECT_EQ(record->state().taken, 100u);
  EXPECT_EQ(record->state().refused, 2u);
  EXPECT_EQ(Text(dir).find("secret"), std::string::npos);
  EXPECT_EQ(ListPending(dir.path()).size(), 1u);
  ASSERT_TRUE(record->Taken(1, 0).ok());
  ASSERT_TRUE(record->Done().ok());
  EXPECT_TRUE(ListPending(dir.path()).empty());
}

TEST(RecordTest, WhatWasNotTakenForCertainIsVoid) {
  const TempDir dir;
  const Stream one{0, "os"};
  {
    auto record = Record::Open(dir.path(), kKey, To());
    ASSERT_TRUE(record->Begin({{one, 10}}).ok());
    ASSERT_TRUE(record->Cancel().ok());
    ASSERT_TRUE(record->Failed("nobody there").ok());
  }
  const auto record = Record::Open(dir.path(), kKey, To());
  EXPECT_TRUE(record->state().intent.empty());
  EXPECT_EQ(record->state().failure, "nobody there");
}

TEST(RecordTest, AKillAtAnyByteLosesAtMostTheLastLine) {
  const TempDir dir;
  const Stream one{0, "os"};
  {
    auto record = Record::Open(dir.path(), kKey, To());
    for (Nanos time = 1; time <= 3; ++time) {
      ASSERT_TRUE(record->Begin({{one, time}}).ok());
      ASSERT_TRUE(record->Taken(10, 0).ok());
    }
  }
  const std::string text = Text(dir);
  Nanos before = 0;
  for (size_t n = 0; n <= text.size(); ++n) {
    const auto state = ParseRecord(std::string_view(text).substr(0, n));
    ASSERT_TRUE(state.ok()) << n;
    const auto at = state->marks.find(one);
    const Nanos mark = at == state->marks.end() ? 0 : at->second;
    EXPECT_GE(mark, before);
    EXPECT_LE(mark, before + 1);
    before = mark;
  }
  EXPECT_EQ(before, 3);
}

TEST(RecordTest, WhatIsNoRecordIsRefused) {
  for (const char* text :
       {"sonde forward 2\n", "hello\n", "sonde forward 1\nq\n", "sonde forward 1\nm x 0 os\n",
        "sonde forward 1\nm 1\n", "sonde forward 1\nm 1 5000000000 os\n", "sonde forward 1\nn -1\n",
        "sonde forward 1\ne \x01\n"}) {
    EXPECT_EQ(ParseRecord(text).status().code(), Code::kCorrupt) << text;
  }
  EXPECT_TRUE(ParseRecord("").ok());
}

}  // namespace
}  // namespace sonde::forward
