// Slurm's lists of hosts: the hosts in their order, and the beginning of a list that is too long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/text/first_hosts.h"
#include "core/text/hostlist.h"

namespace sonde::core_hostlist_test {
namespace {

using testing::ElementsAre;

std::vector<std::string> Expand(std::string_view list, size_t most = 100) {
  const auto hosts = ExpandHosts(list, most);
  EXPECT_TRUE(hosts.has_value()) << list;
  return hosts.value_or(std::vector<std::string>());
}

TEST(ExpandHosts, GivesThemInTheirOrder) {
  EXPECT_THAT(Expand(""), ElementsAre());
  EXPECT_THAT(Expand("n1"), ElementsAre("n1"));
  EXPECT_THAT(Expand("n[009-011,7],login,a2"),
              ElementsAre("n009", "n010", "n011", "n7", "login", "a2"));
  EXPECT_THAT(Expand("r[1-2]n[1-2]x"), ElementsAre("r1n1x", "r1n2x", "r2n1x", "r2n2x"));
  EXPECT_THAT(Expand("10.0.0.1,10.0.0.2"), ElementsAre("10.0.0.1", "10.0.0.2"));
}

TEST(ExpandHosts, TakesNoMoreThanAreWanted) {
  EXPECT_THAT(Expand("n[1-999999999],m", 2), ElementsAre("n1", "n2"));
  EXPECT_THAT(Expand("n[1-2],m[1-999999999]", 3), ElementsAre("n1", "n2", "m1"));
}

TEST(ExpandHosts, WhatIsNoListIsRefused) {
  for (const char* list : {"n[", "n]", "n[]", "n[1", "n[2-1]", "n[a]", "n[1-]", "n[1234567890]",
                           "a,,b", "n[1]]", "n[1][1][1][1][1][1][1][1][1][1]"}) {
    EXPECT_FALSE(ExpandHosts(list, 10).has_value()) << list;
  }
}

// Whatever is left out, those that are named are the first ones.
TEST(FirstHosts, ABeginningNamesTheSameHosts) {
  const std::string list = "login,n[001-003,007,020-022],r[1-2]n[1,3,5],m[1,3]x,z";
  const std::vector<std::string> all = Expand(list);
  ASSERT_EQ(all.size(), 17u);
  for (size_t most = 0; most <= list.size(); ++most) {
    const std::string first = FirstHosts(list, most);
    EXPECT_LE(first.size(), most + 1) << first;
    const std::vector<std::string> hosts = Expand(first);
    EXPECT_TRUE(std::equal(hosts.begin(), hosts.end(), all.begin())) << first;
  }
  EXPECT_EQ(FirstHosts(list, list.size()), list);
  EXPECT_EQ(FirstHosts(list, 16), "login,n[001-003]");
  EXPECT_EQ(FirstHosts(list, 40), "login,n[001-003,007,020-022]");
}

}  // namespace
}  // namespace sonde::core_hostlist_test
