// The line that tells how far long work is.
#include "cli/progress.h"

#include <gtest/gtest.h>

#include "profiles/model/text.h"

namespace sonde::cli::progress_test {
namespace {

TEST(ProgressTest, SaysShareRateAndTimeLeft) {
  EXPECT_EQ(ProgressLine("exporting 4711.0", "bytes", 25u << 20, 100u << 20, 5 * kSecond, 200),
            "exporting 4711.0  [######..................]  25 %  5.0 MiB/s  15 s left");
  EXPECT_EQ(ProgressLine("moving", "profiles", 3, 4, 3 * kSecond, 200),
            "moving  [##################......]  75 %  1 profiles/s  1 s left");
}

TEST(ProgressTest, OfAnUnknownWholeSaysWhatIsDone) {
  EXPECT_EQ(ProgressLine("reading", "bytes", 3u << 20, 0, kSecond, 200),
            "reading  3.0 MiB  3.0 MiB/s");
}

TEST(ProgressTest, KeepsToTheLineAndToWhatIsThere) {
  // More than was announced, nothing yet, all of it: no nonsense, and nothing is left.
  EXPECT_EQ(ProgressLine("a", "bytes", 0, 10, kSecond, 200), "a  [........................]   0 %");
  EXPECT_EQ(ProgressLine("a", "samples", 20, 10, kSecond, 200),
            "a  [########################]  100 %  20 samples/s");
  EXPECT_EQ(text::Width(ProgressLine("a long name", "bytes", 1, 1u << 30, kSecond, 30)), 30u);
}

TEST(ProgressTest, WhoWaitsForOtherWorkOfAServerIsTold) {
  Progress progress("compacting", "parts", false);
  testing::internal::CaptureStderr();
  TellWait(progress)("prune");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "sonde: the server that has the archive open first ends what it was asked for before: "
            "prune\n");
}

}  // namespace
}  // namespace sonde::cli::progress_test
