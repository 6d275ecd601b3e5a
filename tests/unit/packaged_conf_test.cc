// The sonde.conf that is installed shows the defaults; packaging/sonde.conf.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "core/config.h"
#include "core/text/daemon_settings.h"
#include "tests/unit/paths.h"

namespace sonde::packaged_conf_test {
namespace {

std::string Installed() {
  std::ifstream file(kPackagedConf);
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

TEST(PackagedConf, ItsLinesForDaemonsShowTheDefaultsToo) {
  const std::string text = std::regex_replace(Installed(), std::regex("\n#([a-z_]+ =)"), "\n$1");
  DaemonSettings shown;
  int lines = 0;
  ForEachSetting(text, [&](const Setting& line) {
    if (!DaemonSettings::Takes(line)) return true;
    ++lines;
    EXPECT_EQ(shown.Add(line), "");
    return true;
  });
  EXPECT_EQ(lines, 8);
  const DaemonSettings defaults;
  EXPECT_EQ(shown.perf_events, defaults.perf_events);
  EXPECT_EQ(shown.cpus, defaults.cpus);
  EXPECT_EQ(shown.nice, defaults.nice);
  EXPECT_EQ(shown.memory, defaults.memory);
  EXPECT_EQ(shown.oom_score, defaults.oom_score);
  EXPECT_EQ(shown.memory_allowance, defaults.memory_allowance);
  EXPECT_EQ(shown.max_heads, defaults.max_heads);
  EXPECT_EQ(shown.ask_filesystems, defaults.ask_filesystems);
}

}  // namespace
}  // namespace sonde::packaged_conf_test
