// The sonde.conf that is installed shows the defaults; packaging/sonde.conf.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "core/config.h"

namespace sonde {
namespace {

std::string Installed() {
  std::ifstream file(PACKAGED_CONF);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(PackagedConf, AsInstalledIsAllDefaults) {
  const std::string text = Installed();
  ASSERT_FALSE(text.empty());
  const Result<Config> config = ParseConfig(text, "sonde.conf");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(*config, Config());
}

TEST(PackagedConf, ItsCommentedKeysShowTheDefaults) {
  const std::string text = std::regex_replace(Installed(), std::regex("\n#([a-z_]+ =)"), "\n$1");
  ASSERT_NE(text, Installed());
  const Result<Config> config = ParseConfig(text, "sonde.conf");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(*config, Config());
}

}  // namespace
}  // namespace sonde
