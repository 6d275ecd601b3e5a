// What commands print of texts that somebody else has made.
#include <gtest/gtest.h>

#include <string>

#include "cli/command.h"

namespace sonde::cli {
namespace {

TEST(Shown, HasNoCodeForATerminal) {
  EXPECT_EQ(Shown("\x1b]0;title\x07\x1b[2J\r\x7f\b"), "?]0;title??[2J???");
  EXPECT_EQ(Shown("\xc2\x9b"
                  "31m \xe2\x80\xae \xff\xc3"),
            "?31m ? ??");
  EXPECT_EQ(Shown("\x1b[8mhidden\x1b[31"), "?[8mhidden?[31");
  EXPECT_EQ(Shown(std::string_view("a\0b", 3)), "a?b");
}

TEST(Shown, LeavesTheRest) {
  const std::string text =
      "two\nlines\twith gr\xc3\xbc\xc3\x9f, \xe2\x96\x81\xe2\x96\x88, \xf0\x9f\x94\xa5 and \x1b[31m"
      "failed\x1b[0m\n";
  EXPECT_EQ(Shown(text), text);
  EXPECT_EQ(Shown(""), "");
}

TEST(Shown, IsWhatIsPrinted) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(Print("{\"text\":\"\xc2\x9b"
                  "2J\"}\n"),
            0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"text\":\"?2J\"}\n");
}

}  // namespace
}  // namespace sonde::cli
