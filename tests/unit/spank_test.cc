#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/text/options.h"
#include "launcher/environment.h"
#include "launcher/launch.h"
#include "launcher/process.h"
#include "launcher/site/site_policy.h"
#include "launcher/site/system_accounts.h"
#include "spank/plugin_config.h"
#include "spank/rendezvous.h"
#include "spank/user/srun_words.h"

namespace sonde::spank {
namespace {

using testing::HasSubstr;

PluginConfig Parse(std::vector<std::string> arguments, Status& status) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  PluginConfig config;
  status = ParseArguments(static_cast<int>(argv.size()), argv.data(), config);
  return config;
}

// Words of a command line, as the kernel shows them.
bool SaysAsync(const std::vector<std::string>& words, size_t program) {
  std::string text;
  for (const std::string& word : words) text += word + '\0';
  return spank::SaysAsync(text, program);
}

TEST(SrunWords, AsyncCountsInFrontOfTheProgram) {
  EXPECT_TRUE(SaysAsync({"srun", "--async", "-n1", "app"}, 3));
  EXPECT_TRUE(SaysAsync({"srun", "-n", "1", "--asy", "app"}, 4)) << "as short as Slurm takes it";
  EXPECT_TRUE(SaysAsync({"srun", "-o", "file", "--async", "app", "--async"}, 4));
  EXPECT_FALSE(SaysAsync({"srun", "-n1", "./app", "--async"}, 2));
  EXPECT_FALSE(SaysAsync({"srun", "-n", "1", "-o", "file", "./app", "--async"}, 5));
  EXPECT_FALSE(SaysAsync({"srun", "--", "--async"}, 2));
  EXPECT_FALSE(SaysAsync({"srun", "--a", "x", "app"}, 3)) << "--account";
  EXPECT_FALSE(SaysAsync({"srun", "app", "--async"}, 1));
  EXPECT_FALSE(SaysAsync({}, 5));
}

TEST(PluginConfig, ArgumentsOfPlugstack) {
  Status status;
  const PluginConfig config =
      Parse({"sonded=/opt/sonded", "config=/etc/s.conf", "sonde=/opt/sonde", "enable=no"}, status);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(config.sonded, "/opt/sonded");
  EXPECT_EQ(config.path, "/etc/s.conf");
  EXPECT_EQ(config.sonde, "/opt/sonde");
  EXPECT_EQ(config.enable, PluginConfig::Enable::kNo);
  EXPECT_EQ(Parse({"enable=accept"}, status).enable, PluginConfig::Enable::kAccept);
  EXPECT_EQ(Parse({"enable=on"}, status).enable, PluginConfig::Enable::kYes);
  EXPECT_TRUE(status.ok());
}

TEST(PluginConfig, AWrongArgumentIsNamedAndTheOthersCount) {
  for (const char* bad : {"sonded=relative", "enable=perhaps", "debug=1", "sonde="}) {
    Status status;
    const PluginConfig config = Parse({bad, "config=/etc/s.conf"}, status);
    ASSERT_FALSE(status.ok()) << bad;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(std::string(bad).substr(0, std::string(bad).find('='))));
    EXPECT_EQ(config.path, "/etc/s.conf");
    EXPECT_TRUE(config.sonded.starts_with('/'));
    EXPECT_EQ(config.enable, PluginConfig::Enable::kYes);
  }
}

TEST(PluginConfig, KeysOfTheDaemonAreLeftToIt) {
  PluginConfig config;
  const Status status = ParseSondeConf(
      "# site\nfanout = 4\nmonitor_batch = off # not here\nreport=off\nport_range = 7000-7010\n",
      "sonde.conf", config);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(config.policy.monitor_batch);
  EXPECT_TRUE(config.policy.monitor_steps);
  EXPECT_FALSE(config.report);
  EXPECT_EQ(config.port_range, "7000-7010");
}

TEST(PluginConfig, AWrongValueIsNamedAndLeavesTheDefault) {
  PluginConfig config;
  const Status status =
      ParseSondeConf("\nmonitor_steps = maybe\nreport = off\n", "sonde.conf", config);
  EXPECT_EQ(status.message(), "sonde.conf:2: monitor_steps=maybe: expected yes or no");
  EXPECT_TRUE(config.policy.monitor_steps);
  EXPECT_FALSE(config.report);
}

TEST(PluginConfig, TheEnvironmentOverridesTheFile) {
  const char* const variables[] = {"SONDE_REPORT=off", "SONDE_MONITOR_INTERACTIVE=yes", nullptr};
  PluginConfig config;
  config.path = "/nonexistent/sonde.conf";
  ASSERT_TRUE(LoadSondeConf(launch::Environment(variables), config).ok());
  EXPECT_FALSE(config.report);
  EXPECT_TRUE(config.policy.monitor_interactive);
}

TEST(PluginConfig, OnlyTheDefaultFileMayBeMissing) {
  const char* const none[] = {nullptr};
  const auto load = [&](PluginConfig config) {
    config.path = "/nonexistent/sonde.conf";
    const Status status = LoadSondeConf(launch::Environment(none), config);
    EXPECT_EQ(config.rules_known, status.ok());
    return config.rules_known;
  };
  Status status;
  EXPECT_TRUE(load(Parse({}, status)));
  EXPECT_FALSE(load(Parse({"config=/etc/s.conf"}, status)));
  EXPECT_FALSE(load(Parse({"config=relative"}, status))) << "the site means some file";
  PluginConfig directory;
  directory.path = "/";
  EXPECT_FALSE(LoadSondeConf(launch::Environment(none), directory).ok());
  EXPECT_FALSE(directory.rules_known);
}

// sonde.conf, removed at the end.
class SondeConf : public testing::Test {
 protected:
  SondeConf() {
    config_.path = testing::TempDir() + "sonde-conf-XXXXXX";
    const int fd = ::mkstemp(config_.path.data());
    if (fd < 0) std::abort();
    ::close(fd);
  }
  ~SondeConf() override { std::remove(config_.path.c_str()); }

  Status Load(const std::string& text, const std::vector<const char*>& variables) {
    std::ofstream(config_.path) << text;
    std::vector<const char*> ended = variables;
    ended.push_back(nullptr);
    return LoadSondeConf(launch::Environment(ended.data()), config_);
  }
  PluginConfig config_;
};

TEST_F(SondeConf, WhatItDoesNotWatchNoVariableWatches) {
  ASSERT_TRUE(
      Load("monitor_batch = no\nmonitor_interactive = yes\n",
           {"SONDE_MONITOR_BATCH=yes", "SONDE_MONITOR_STEPS=no", "SONDE_MONITOR_INTERACTIVE=no"})
          .ok());
  EXPECT_FALSE(config_.policy.monitor_batch);
  EXPECT_FALSE(config_.policy.monitor_steps) << "a user may switch off";
  EXPECT_FALSE(config_.policy.monitor_interactive);
}

TEST_F(SondeConf, WithoutASocketForMetricProxyNoVariableMakesOne) {
  ASSERT_TRUE(Load("", {}).ok());
  EXPECT_TRUE(config_.policy.proxy_socket);
  ASSERT_TRUE(Load("proxy_socket = yes\n", {"SONDE_PROXY_SOCKET=no"}).ok());
  EXPECT_FALSE(config_.policy.proxy_socket) << "a user may switch it off";
  config_.policy = {};
  ASSERT_TRUE(Load("proxy_socket = no\n", {"SONDE_PROXY_SOCKET=yes"}).ok());
  EXPECT_FALSE(config_.policy.proxy_socket);
}

TEST_F(SondeConf, ItsRulesAreNoVariables) {
  ASSERT_TRUE(Load("max_level = 2\n[user = 0]\nmax_level = 1\n",
                   {"SONDE_MAX_LEVEL=4", "SONDE_DEFAULT_LEVEL=4", "SONDE_MIN_PERIOD=10ms"})
                  .ok());
  EXPECT_FALSE(config_.rules.WatchesUnasked());
  launch::SystemAccounts accounts;
  EXPECT_EQ(config_.rules.Grant({4, {}, ""}, {0, {}, "", "", ""}, accounts, "f").level, 1);
  EXPECT_EQ(config_.rules.Grant({4, {}, ""}, {1, {}, "", "", ""}, accounts, "f").level, 2);
}

TEST_F(SondeConf, AWrongRuleIsNamedAndTheOtherKeysCount) {
  const Status status = Load("max_level = 2\nreport = off\n[user = 0]\nport_range = 1-2\n", {});
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(config_.path + ":4: 'port_range' stands below the brackets of line 3"));
  EXPECT_FALSE(config_.report);
  EXPECT_EQ(config_.port_range, "") << "nobody's, as it stands below the brackets";
}

TEST(SystemAccounts, NamesOfUsersAndGroups) {
  launch::SystemAccounts accounts;
  EXPECT_EQ(accounts.IsUser(0, "root"), Truth::kYes);
  EXPECT_EQ(accounts.IsUser(0, "ro*"), Truth::kYes);
  EXPECT_EQ(accounts.IsUser(0, "alice"), Truth::kNo);
  EXPECT_EQ(accounts.IsUser(0xfffffff0, "root"), Truth::kUnknown) << "nobody knows this user";
  const std::vector<uint32_t> gids = {0xfffffff0, 0};
  EXPECT_EQ(accounts.IsGroup(gids, "root"), Truth::kYes);
  EXPECT_EQ(accounts.IsGroup(gids, "r*t"), Truth::kYes);
  EXPECT_EQ(accounts.IsGroup(gids, "daemon"), Truth::kNo);
  EXPECT_EQ(accounts.IsGroup(gids, "no-such-group"), Truth::kNo);
  EXPECT_EQ(accounts.IsGroup({}, "*"), Truth::kNo);
}

TEST(PortRange, IsTwoPortsInOrder) {
  EXPECT_EQ(ParsePortRange("60001-63000"), PortRange(60001, 63000));
  for (const char* bad : {"", "1", "5-4", "0-9", "1-70000", "1-2x", "-"}) {
    EXPECT_EQ(ParsePortRange(bad), std::nullopt) << bad;
  }
}

TEST(Rendezvous, ASocketOfTheRangeIsBoundEvenWhenOthersAreTaken) {
  Result<Listener> first = Listen({}, std::nullopt);
  ASSERT_TRUE(first.ok());
  const uint16_t taken = first->port;
  const Result<Listener> none = Listen({}, PortRange(taken, taken));
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("no free port from"));
  // Some port nearby is free.
  const PortRange range(static_cast<uint16_t>(taken - 20), taken);
  const Result<Listener> other = Listen({}, range);
  ASSERT_TRUE(other.ok());
  EXPECT_GE(other->port, range.first);
  EXPECT_LT(other->port, taken);
}

TEST(Rendezvous, OnlyWhatSrunWroteIsTaken) {
  const std::string key(64, 'a');
  const auto good = ParseRendezvous("4242:" + key);
  ASSERT_TRUE(good);
  EXPECT_EQ(good->port, 4242);
  EXPECT_EQ(good->key, key);
  // Written so that any port has the same length.
  EXPECT_TRUE(RendezvousText(*good).starts_with("04242:" + key + " "));
  EXPECT_EQ(ParseRendezvous("04242:" + key)->port, 4242);
  EXPECT_EQ(NoRendezvous().size(), RendezvousText(*good).size());
  // With a key that munge has wrapped, too.
  const std::string wrapped = RendezvousText({4242, "MUNGE:AwQFAADf7oMV:"});
  EXPECT_EQ(wrapped.size(), NoRendezvous().size());
  EXPECT_EQ(ParseRendezvous(wrapped)->key, "MUNGE:AwQFAADf7oMV:");
  for (const std::string& bad :
       {std::string(), std::string("4242"), NoRendezvous(), "0:" + key, "70000:" + key,
        "4242:" + key + "a", "4242:" + std::string(64, 'A'), "4242:" + std::string(63, 'a'),
        ":" + key, "x:" + key, std::string("4242:munge"), std::string(512, ' '),
        "4242:" + key + " a"}) {
    EXPECT_FALSE(ParseRendezvous(bad)) << bad;
  }
}

// This process has no libmunge, as srun where Slurm authenticates in another way.
TEST(Rendezvous, WithoutMungeTheKeyStaysAsItIs) {
  const std::string key(64, 'a');
  const launch::Environment none;
  EXPECT_EQ(*WrapKey(key, {}), key);
  EXPECT_EQ(*OpenKey(key, none), key);
  const auto wrapped = OpenKey("MUNGE:AwQFAADf7oMV:", none);
  EXPECT_EQ(wrapped.status().code(), Code::kUnavailable);
  EXPECT_THAT(std::string(wrapped.status().message()),
              HasSubstr("by munge, which this node's does not use"));
}

TEST(EventList, IsCheckedAtSubmit) {
  for (const char* good : {"cycles", "a,b:u,INST_RETIRED:ANY_P,r01c2,x.y-z=1"}) {
    EXPECT_TRUE(ValidEventList(good)) << good;
  }
  // As many as a task can have opened, which the documents promise.
  std::string many = "a";
  for (size_t i = 1; i < launch::kMaxEvents; ++i) many += ",a";
  EXPECT_TRUE(ValidEventList(many));
  EXPECT_THAT(std::string(kEventListExpected),
              HasSubstr("1 to " + std::to_string(launch::kMaxEvents) + " names"));
  for (const std::string& bad :
       {std::string(), std::string(","), std::string("a,"), std::string("a b"), std::string("a\n"),
        many + ",a", std::string(129, 'a'), std::string("a/b/")}) {
    EXPECT_FALSE(ValidEventList(bad)) << bad;
  }
}

TEST(MachinePolicy, IsAnArgumentOfPlugstackConf) {
  using enum launch::SitePolicy::Machine;
  Status status;
  EXPECT_EQ(Parse({}, status).policy.machine_counters, kExclusive);
  EXPECT_EQ(Parse({"machine_counters=never"}, status).policy.machine_counters, kNever);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(Parse({"machine_counters=yes"}, status).policy.machine_counters, kExclusive);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected exclusive, always or never"));
}

}  // namespace
}  // namespace sonde::spank
