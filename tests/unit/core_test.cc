#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/config.h"
#include "core/job.h"
#include "core/metric.h"
#include "core/step_environment.h"
#include "core/text/hostlist.h"
#include "core/text/options.h"
#include "core/text/remark.h"
#include "core/text/user_tags.h"
#include "core/time.h"
#include "launcher/launch.h"
#include "tests/unit/temp_dir.h"

namespace sonde::core_test {
namespace {

using testing::HasSubstr;

TEST(Status, NamesWhereItCameFrom) {
  const Status inner(Code::kIo, "no space left");
  const Status outer = inner.Within("write block");
  EXPECT_EQ(outer.message(), "write block: no space left");
  EXPECT_EQ(outer.code(), Code::kIo);
  EXPECT_TRUE(Status().Within("anything").ok());
}

TEST(Bytes, WhatIsWrittenIsRead) {
  std::string bytes;
  ByteWriter w(bytes);
  w.Fixed<uint32_t>(0xdeadbeef);
  w.Varint(UINT64_MAX);
  w.Signed(INT64_MIN);
  w.Text("tag");
  ByteReader r(bytes);
  EXPECT_EQ(r.Fixed<uint32_t>(), 0xdeadbeef);
  EXPECT_EQ(r.Varint(), UINT64_MAX);
  EXPECT_EQ(r.Signed(), INT64_MIN);
  EXPECT_EQ(r.Text(16), "tag");
  EXPECT_TRUE(r.done());
}

TEST(Bytes, ManyVarintsAreReadAsOneByOne) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    // Mostly short ones, as residuals are; some are written longer than they need be.
    std::string bytes;
    const size_t n = random() % 40;
    for (size_t i = 0; i < n; ++i) {
      ByteWriter(bytes).Varint(random() >> (random() % 64));
      if (random() % 8 == 0) bytes += std::string("\x80\x80\x00", 3).substr(random() % 3);
    }
    if (random() % 4 == 0 && !bytes.empty()) bytes.resize(random() % bytes.size());
    if (random() % 4 == 0) bytes += '\xff';
    ByteReader one(bytes), many(bytes);
    std::vector<uint64_t> expected, read(n + 1);
    for (size_t i = 0; i < n + 1; ++i) expected.push_back(one.Varint());
    many.Varints(read.data(), read.size());
    EXPECT_EQ(many.ok(), one.ok());
    EXPECT_EQ(many.left(), one.left());
    if (one.ok()) {
      EXPECT_EQ(read, expected);
    }
  }
}

TEST(Bytes, AReaderNeverPassesItsEnd) {
  for (const std::string& bytes : {std::string("\x05"
                                               "ab",
                                               3),
                                   std::string(10, '\xff'), std::string()}) {
    ByteReader r(bytes);
    EXPECT_EQ(r.Text(100), "");
    EXPECT_FALSE(r.ok());
    EXPECT_EQ(r.Varint(), 0u);
    EXPECT_EQ(r.Fixed<double>(), 0.0);
  }
  ByteReader limited(
      "\x04"
      "abcd");
  EXPECT_EQ(limited.Text(3), "");
  EXPECT_FALSE(limited.ok());
}

TEST(Bytes, ACountIsBoundedByWhatIsLeft) {
  std::string bytes;
  ByteWriter(bytes).Varint(1'000'000'000);
  ByteReader r(bytes);
  EXPECT_EQ(r.Count(8, SIZE_MAX), 0u);
  EXPECT_FALSE(r.ok());
}

TEST(Options, LevelsAreOneDigit) {
  EXPECT_EQ(ParseLevel("0"), 0);
  EXPECT_EQ(ParseLevel("4"), 4);
  for (const char* bad : {"", "5", "-1", "2 ", "22", "abc", "+1"})
    EXPECT_EQ(ParseLevel(bad), -1) << bad;
}

TEST(Options, PeriodsHaveUnitsAndLimits) {
  EXPECT_EQ(ParsePeriod("1"), kSecond);
  EXPECT_EQ(ParsePeriod("0.5"), kSecond / 2);
  EXPECT_EQ(ParsePeriod("10ms"), kMinPeriod);
  EXPECT_EQ(ParsePeriod("1h"), kMaxPeriod);
  EXPECT_EQ(ParsePeriod("1.5s"), 1'500'000'000);
  for (const char* bad :
       {"", "0", "9ms", "61m", "2h", "1x", "s", "1e3", "99999999999999999999", "-1"}) {
    EXPECT_EQ(ParsePeriod(bad), -1) << bad;
  }
}

TEST(Duration, IsParsedAndPrinted) {
  EXPECT_EQ(*ParseDuration("500ms"), 500 * kMillisecond);
  EXPECT_EQ(*ParseDuration("1.5h"), 5400 * kSecond);
  for (const char* bad : {"", "1.2.3s", ".", "5 s", "1y", "999999999999999999h"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
  EXPECT_EQ(FormatDuration(1'500'000'000), "1.5 s");
  EXPECT_EQ(FormatDuration(125 * kSecond), "2 min 5 s");
  EXPECT_EQ(FormatDuration(7500 * kSecond), "2 h 5 min");
}

TEST(Tick, LiesAfterNowOnAMultiple) {
  EXPECT_EQ(NextTick(1'999'999'999, kSecond), 2 * kSecond);
  EXPECT_EQ(NextTick(2 * kSecond, kSecond), 3 * kSecond);
}

TEST(Tags, AreSortedAndUnique) {
  Tags tags{{"b", "2"}, {"a", "1"}};
  tags.Set("b", "3");
  EXPECT_EQ(SeriesName("m", tags), "m{a=\"1\",b=\"3\"}");
  tags.Erase("a");
  EXPECT_EQ(tags.Find("a"), nullptr);
  EXPECT_EQ(*tags.Find("b"), "3");
}

TEST(Names, AreChecked) {
  EXPECT_TRUE(CheckMetricName("node_cpu_seconds_total").ok());
  for (const char* bad : {"", "1st", "a b", "a{b}", "\xc3\xa4"})
    EXPECT_FALSE(CheckMetricName(bad).ok()) << bad;
  EXPECT_FALSE(CheckMetricName(std::string(129, 'a')).ok());
  EXPECT_TRUE(CheckTag("phase", "Wärme").ok());
  EXPECT_FALSE(CheckTag("phase", "\xc3").ok());
  EXPECT_FALSE(CheckTag("phase", "a\nb").ok());
  EXPECT_FALSE(CheckTag("phase", "").ok());
  EXPECT_FALSE(CheckTag("pha.se", "x").ok());
}

std::string Remark(std::string_view text) {
  char out[kMaxRemarkLength + 1];
  const size_t size = MakeRemark(text, out);
  EXPECT_EQ(out[size], '\0');
  EXPECT_TRUE(names::IsPlainText(std::string_view(out, size)));
  return {out, size};
}

TEST(Remark, AnyTextBecomesOneThatIsShown) {
  EXPECT_EQ(Remark("  two\nlines\tand a \x01 \n"), "two lines and a");
  EXPECT_EQ(Remark("f\xc3\xbcr \xff\xfe"), "f\xc3\xbcr ??");
  EXPECT_EQ(Remark(std::string_view("a\0b", 3)), "a b");
  EXPECT_EQ(Remark(" \n "), "");
}

TEST(Remark, WhatIsTooLongIsCutBetweenTwoCharacters) {
  const std::string longest(192, 'x');
  EXPECT_EQ(Remark(longest), longest);
  EXPECT_EQ(Remark(longest + "x"), std::string(189, 'x') + "...");
  // Of two bytes each, from an odd place on.
  std::string text = "x";
  for (int i = 0; i < 200; ++i) text += "\xc3\xbc";
  EXPECT_EQ(Remark(text), text.substr(0, 189) + "...");
  text.insert(0, "x");
  EXPECT_EQ(Remark(text), text.substr(0, 188) + "...");
}

TEST(JobStep, SplitsAtTheLastDot) {
  EXPECT_EQ(JobStep::Parse("123.4").job, "123");
  EXPECT_EQ(JobStep::Parse("123.batch").step, "batch");
  EXPECT_EQ(JobStep::Parse("123").step, "");
}

TEST(Launch, CarriesKeysAndCutsWhatCannotBeCarried) {
  launch::Writer w(launch::kLaunch);
  w.Add("job", 123);
  w.Add("command", "a\nb=c");
  ASSERT_TRUE(w.Complete().ok());
  std::string seen;
  launch::ForEach(std::string_view(w.packet()).substr(1),
                  [&](auto k, auto v) { seen += std::string(k) + ":" + std::string(v) + ";"; });
  EXPECT_EQ(seen, "job:123;command:a;");
}

TEST(Launch, WhatDoesNotFitIsAnErrorUnlessItMayBeLeftOut) {
  launch::Writer w(launch::kLaunch);
  w.Add("home", std::string(20'000, 'h'));
  EXPECT_FALSE(w.AddIfRoom("env", std::string(20'000, 'e')));
  EXPECT_TRUE(w.AddIfRoom("env", "A=1"));
  EXPECT_TRUE(w.Complete().ok());
  w.Add("archive", std::string(15'000, 'a'));
  w.Add("level", 2);
  EXPECT_EQ(w.Complete().message(),
            "tell sonded what to do: that takes more than 31744 bytes, 20000 of them for 'home'");
  EXPECT_TRUE(w.packet().ends_with("\nenv=A=1\nlevel=2\n"));
}

TEST(Launch, AMessageLeavesRoomForWhatAnActingHeadIsTold) {
  const auto fill = [](char kind) {
    launch::Writer w(kind);
    while (w.AddIfRoom("e", "")) continue;
    return w.packet().size();
  };
  EXPECT_LE(fill(launch::kLaunch), launch::kMaxPacket - 200);
  EXPECT_GT(fill(launch::kReport), launch::kMaxPacket - 4);
}

TEST(Config, ReadsWhatIsThere) {
  const auto config = ParseConfig(
      "# site\nfanout = 4\n\nreport=short # quiet\nprofile_limit = 2M\n"
      "fabric_after = 500ms\nport_range = 60000-60010\nprovider = cxi , tcp;ofi_rxm,verbs\n",
      "sonde.conf");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->fanout, 4u);
  EXPECT_EQ(config->report, "short");
  EXPECT_EQ(config->profile_limit, 2u << 20);
  EXPECT_EQ(config->fabric_after, kSecond / 2);
  EXPECT_EQ(config->provider, "cxi,tcp;ofi_rxm,verbs");
}

TEST(Config, WhoElsesPagesMayAskAndHowANanIsWritten) {
  const auto cors = [](const std::string& text) {
    const auto config = ParseConfig("http_cors = " + text + "\n", "sonde.conf");
    return config.ok() ? config->http_cors : "refused";
  };
  EXPECT_EQ(cors("https://a.example"), "https://a.example");
  EXPECT_EQ(cors("https://a.example:8443 , http://localhost:3000"),
            "https://a.example:8443,http://localhost:3000");
  EXPECT_EQ(cors("*"), "*");
  EXPECT_EQ(cors(""), "");
  for (const char* bad :
       {"a.example", "https://", "https://a.example/", "https://a.example/path", "ftp://a.example",
        "https://a example", "https://a.example,,*", "https://a.example;https://b.example/", "null",
        "https://a.example\x01", "https://\xc3\xa4.example"}) {
    EXPECT_EQ(cors(bad), "refused") << bad;
  }
  EXPECT_FALSE(ParseConfig("", "sonde.conf")->pue.has_value());
  EXPECT_FALSE(ParseConfig("pue =\n", "sonde.conf")->pue.has_value());
  EXPECT_EQ(ParseConfig("pue = 1.25\n", "sonde.conf")->pue, 1.25);
  EXPECT_EQ(ParseConfig("carbon_g_per_kwh = 0\n", "sonde.conf")->carbon_g_per_kwh, 0);
  EXPECT_FALSE(ParseConfig("", "sonde.conf")->opentsdb_nan_null);
  EXPECT_TRUE(ParseConfig("opentsdb_nan = null\n", "sonde.conf")->opentsdb_nan_null);
  EXPECT_FALSE(ParseConfig("opentsdb_nan = text\n", "sonde.conf")->opentsdb_nan_null);
}

TEST(Config, AnErrorNamesFileLineAndWhatWasExpected) {
  const std::pair<const char*, const char*> cases[] = {
      {"fanout = 1", "sonde.conf:1: fanout = 1: expected a whole number from 2 to 256"},
      {"\nfan = 3", "sonde.conf:2: unknown key 'fan'"},
      {"fanout = 3\nfanout = 4", "sonde.conf:2: fanout is given twice"},
      {"hello", "sonde.conf:1: expected key = value"},
      {"report = loud", "expected one of full, short, off"},
      {"port_range = 9-3", "expected two ports"},
      {"opentsdb_nan = NaN", "expected null or text"},
      {"pue = 0.9", "expected a number from 1 to 10"},
      {"pue = nan", "expected a number from 1 to 10"},
      {"carbon_g_per_kwh = 380 g", "expected a number from 0 to 10000"},
      {"carbon_g_per_kwh = -1", "expected a number from 0 to 10000"},
      {"http_cors = a.example", "expected origins such as https://grafana.example.org"},
      {"provider =", "expected auto, none, or names of libfabric's providers"},
      {"provider = cxi,,tcp", "expected auto, none, or names"},
      {"provider = cxi,none", "expected auto, none, or names"},
  };
  for (const auto& [text, message] : cases) {
    const auto config = ParseConfig(text, "sonde.conf");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(message));
  }
}

TEST(Config, ADaemonGoesOnWithoutWhatIsWrong) {
  const TempDir dir;
  const std::string path = dir.path() + "/sonde.conf";
  std::ofstream(path) << "archive = /scratch/%u\nof_a_later_release = 1\nfanout = many\n"
                      << "port_range = 60000-60100\n[user=a]\n";
  EXPECT_FALSE(LoadConfig(path).ok());
  Status wrong;
  const Config config = LoadWhatIsRight(path, wrong);
  EXPECT_THAT(std::string(wrong.message()),
              HasSubstr("sonde.conf:2: unknown key 'of_a_later_release'"));
  EXPECT_EQ(config.archive, "/scratch/%u");
  EXPECT_EQ(config.fanout, Config().fanout);
  EXPECT_EQ(config.port_range, "60000-60100");
}

TEST(Config, NoVariableHasADaemonAskFilesystemsThatMayHang) {
  const TempDir dir;
  const std::string path = dir.path() + "/sonde.conf";
  setenv("SONDE_ASK_FILESYSTEMS", "fuse.*", 1);
  std::ofstream(path) << "fanout = 8\n";
  EXPECT_EQ(LoadConfig(path)->ask_filesystems, "");
  std::ofstream(path) << "ask_filesystems = lustre\n";
  EXPECT_EQ(LoadConfig(path)->ask_filesystems, "lustre");
  unsetenv("SONDE_ASK_FILESYSTEMS");
}

TEST(Config, TheArchivePatternNamesTheUser) {
  Config config;
  EXPECT_EQ(ArchivePath(config, "ada", 1000, "/home/ada"), "/home/ada/.local/share/sonde");
  config.archive = "/scratch/%u/%U/sonde";
  EXPECT_EQ(ArchivePath(config, "ada", 1000, "/home/ada"), "/scratch/ada/1000/sonde");
}

TEST(UserTags, AListIsCheckedAsAWhole) {
  std::string seen;
  EXPECT_TRUE(ForEachUserTag("campaign=winter 26,keep,a.b-c=", [&](auto name, auto value) {
    seen.append(name).append("<").append(value).append(">");
  }));
  EXPECT_EQ(seen, "campaign<winter 26>keep<>a.b-c<>");
  EXPECT_TRUE(ValidUserTagList("a=b=c"));
  std::string many = "t0";
  for (int i = 1; i < 32; ++i) many += ",t" + std::to_string(i);
  EXPECT_TRUE(ValidUserTagList(many));
  EXPECT_FALSE(ValidUserTagList(many + ",t32"));
  for (const char* wrong : {"", "=x", "a b=1", "a,,b", "a=\n", "\xc3\xa4=1", ",a"}) {
    EXPECT_FALSE(ValidUserTagList(wrong)) << wrong;
  }
  EXPECT_TRUE(ValidUserTag(std::string(64, 'n'), std::string(256, 'v')));
  EXPECT_FALSE(ValidUserTag(std::string(65, 'n'), ""));
  EXPECT_FALSE(ValidUserTag("n", std::string(257, 'v')));
  EXPECT_FALSE(ValidUserTag("n", "a,b"));
}

TEST(StepEnvironment, KeepsHowTheStepWasSetUpAndNoSecrets) {
  for (const char* name : {"SLURM_JOB_ID", "OMP_NUM_THREADS", "LOADEDMODULES"}) {
    EXPECT_TRUE(KeepsVariable(name)) << name;
  }
  for (const char* name :
       {"HOME", "AWS_SECRET_ACCESS_KEY", "SLURM_JWT", "SLURM_API_TOKEN", "OMP_PASSWORD",
        "SLURM_my_api_key", "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_rendezvous",
        "SLURM_AUTH", "LOADEDMODULES_x"}) {
    EXPECT_FALSE(KeepsVariable(name)) << name;
  }
  EXPECT_FALSE(KeepsVariable("SLURM_" + std::string(200, 'x')));
  std::vector<std::string> kept;
  KeptEnvironment environment([&](std::string_view entry) { kept.emplace_back(entry); });
  environment.Offer("PATH=/bin");
  environment.Offer("OMP_PLACES=" + std::string(5000, 'x'));
  for (int i = 0; i < 100; ++i) {
    environment.Offer("SLURM_" + std::to_string(i) + "=" + std::string(900, 'y'));
  }
  EXPECT_EQ(kept.front(), "OMP_PLACES=" + std::string(kMaxKeptValue, 'x'));
  size_t bytes = 0;
  for (const std::string& entry : kept) bytes += entry.size();
  EXPECT_LE(bytes, kMaxKeptBytes);
  EXPECT_GT(bytes, kMaxKeptBytes - 1000);
}

TEST(CompressHosts, WritesThemAsSlurmDoes) {
  EXPECT_EQ(CompressHosts({}), "");
  EXPECT_EQ(CompressHosts({"n1"}), "n1");
  EXPECT_EQ(CompressHosts({"n3", "n1", "n2", "n7"}), "n[1-3,7]");
  EXPECT_EQ(CompressHosts({"n008", "n009", "n010", "login"}), "n[008-010],login");
  // Another number of digits is another family: n[08-10] would name other nodes.
  EXPECT_EQ(CompressHosts({"n8", "n9", "n10"}), "n[8-9],n10");
  EXPECT_EQ(CompressHosts({"n1", "n1"}), "n1");
}

TEST(NameHosts, CountsThoseThatWouldFillALine) {
  EXPECT_EQ(NameHosts({"n1"}), "n1");
  EXPECT_EQ(NameHosts({"n1", "n2", "n3"}), "n[1-3]");
  std::vector<std::string> odd;
  for (int i = 0; i < 100; ++i) odd.push_back("n" + std::to_string(2 * i));
  EXPECT_EQ(NameHosts(odd), "100 nodes");
  const std::string one(100, 'x');
  EXPECT_EQ(NameHosts({one}), one);
}

}  // namespace
}  // namespace sonde::core_test
