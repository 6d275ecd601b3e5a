#include <gtest/gtest.h>

#include <string>

#include "core/text/printable.h"

namespace sonde::core_printable_test {
namespace {

TEST(Printable, HasAQuestionMarkForWhatCannotBeShown) {
  EXPECT_EQ(Printable("J\xc3\xbcrgen \xe2\x82\xac \xf0\x9f\x9a\x80"),
            "J\xc3\xbcrgen \xe2\x82\xac \xf0\x9f\x9a\x80");
  EXPECT_EQ(Printable("a\nb\tc\x7f"), "a?b?c?");
  EXPECT_EQ(Printable("\033[31m\xc2\x9b"
                      "31m"),
            "?[31m?31m")
      << "codes for terminals";
  EXPECT_EQ(Printable("\xff\xc3\xe2\x82"), "????") << "not UTF-8";
  EXPECT_EQ(Printable("a\xc2\x85"
                      "b\xe2\x80\xa8"
                      "c\xe2\x80\xa9"
                      "d"),
            "a?b?c?d")
      << "ends of lines";
  EXPECT_EQ(Printable("\xe2\x80\xae"
                      "abc\xe2\x81\xa6"),
            "?abc?")
      << "turns of direction";
  EXPECT_EQ(Printable("\xc2\xa0\xe2\x80\xa7\xe2\x80\xaf"), "\xc2\xa0\xe2\x80\xa7\xe2\x80\xaf");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a?b");
}

TEST(OneLine, HasNothingThatCouldBeTakenForAnotherLine) {
  EXPECT_EQ(OneLine("a\n\n  b\r\n", 100), "a; b");
  EXPECT_EQ(OneLine("\033[31mred\a\x80", 100), "?[31mred??");
  EXPECT_EQ(OneLine(" \n", 100), "");
}

TEST(OneLine, IsCutBetweenCharacters) {
  EXPECT_EQ(OneLine("abcdef", 3), "abc...");
  EXPECT_EQ(OneLine("abcdef", 3, true), "...def");
  EXPECT_EQ(OneLine("ab\xc3\xbc"
                    "c",
                    3),
            "ab...");
  EXPECT_EQ(OneLine("ab\xc3\xbc"
                    "cd",
                    3, true),
            "...cd");
  EXPECT_EQ(OneLine("abc", 3), "abc");
}

}  // namespace
}  // namespace sonde::core_printable_test
