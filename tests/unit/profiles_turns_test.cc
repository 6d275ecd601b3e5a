#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "profiles/archive/turns.h"

namespace sonde::profiles_turns_test {
namespace {

TEST(ArchiveTurnsTest, WhatIsShortComesInWhereLongWorkPauses) {
  ArchiveTurns turns;
  std::atomic<bool> changing = true;
  std::atomic<bool> done = false;
  const auto turn = turns.Long();
  std::thread other([&] {
    const auto brief = turns.Short();
    EXPECT_TRUE(brief.ok());
    EXPECT_FALSE(changing);
    done = true;
  });
  while (!done) {
    changing = false;
    turns.Pause();
    changing = !done;
  }
  other.join();
}

TEST(ArchiveTurnsTest, LongWorkIsToldThatSomethingShortWaits) {
  ArchiveTurns turns;
  const auto turn = turns.Long();
  EXPECT_FALSE(turns.IsWanted());
  std::thread other([&] { EXPECT_TRUE(turns.Short().ok()); });
  while (!turns.IsWanted()) std::this_thread::yield();
  turns.Pause();
  EXPECT_FALSE(turns.IsWanted());
  other.join();
}

TEST(ArchiveTurnsTest, LongWorkWaitsForOtherLongWorkAlsoInItsPauses) {
  ArchiveTurns turns;
  std::atomic<bool> over = false;
  std::thread other;
  {
    const auto turn = turns.Long();
    other = std::thread([&] {
      const auto next = turns.Long();
      EXPECT_TRUE(over);
    });
    const ArchiveTurns::Rest rest(turns);
    EXPECT_TRUE(turns.Short().ok());
    EXPECT_TRUE(turns.Short().ok());
    turns.Pause();
    over = true;
  }
  other.join();
}

TEST(ArchiveTurnsTest, NobodyComesInWhereSomebodyIsAlone) {
  ArchiveTurns turns;
  {
    const auto turn = turns.Alone();
    EXPECT_EQ(turns.Short().status().code(), Code::kBusy);
  }
  EXPECT_TRUE(turns.Short().ok());
  const auto turn = turns.Long();
}

}  // namespace
}  // namespace sonde::profiles_turns_test
