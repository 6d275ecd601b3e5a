// sonde serve: the archive as a data source, and the command as its users run it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <utility>

#include "core/log.h"
#include "insight/steps/peaks_file.h"
#include "profiles/archive/ask_keeper.h"
#include "profiles/records/keys.h"
#include "profiles/upkeep/open_db.h"
#include "serve/head_client.h"
#include "tests/unit/cli_serve_fixture.h"
#include "tests/unit/cli_served.h"
#include "tests/unit/sonde_command.h"
#include "tests/unit/task_wait.h"

namespace sonde::cli::cli_serve_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

Endpoint ParseAddress(const std::string& text) {
  Endpoint endpoint;
  endpoint.host = HostName();
  endpoint.address = "127.0.0.1";
  const size_t at = text.find("http://127.0.0.1:");
  const size_t token = text.find("/#token=");
  if (at == std::string::npos || token == std::string::npos) return endpoint;
  endpoint.port = static_cast<uint16_t>(std::stoi(text.substr(at + 17)));
  endpoint.token = text.substr(token + 8, text.find('\n', token) - token - 8);
  return endpoint;
}

TEST_F(ServeTest, ListsFinishedStepsAndTheirSeries) {
  const auto source = OpenSource();
  const auto jobs = WaitFor(*source, &web::StepHistory::Jobs, size_t{10});
  ASSERT_TRUE(jobs.ok());
  ASSERT_THAT(*jobs, SizeIs(2));
  EXPECT_EQ(jobs->at(0).id.ToString(), "124.0");
  const auto profile = [&](const JobStep& id) {
    return WaitFor(*source, &web::StepHistory::GetProfile, id);
  };
  EXPECT_TRUE(profile({"123", "0"}).ok());
  EXPECT_TRUE(profile({"123", ""}).ok());
  EXPECT_EQ(profile({"9", "0"}).status().code(), Code::kNotFound);
  const auto list = [&](const std::string& metric, size_t limit) {
    return WaitFor(*source, &web::StepSeries::ListSeries, metric, limit);
  };
  const auto series = list("task_resident_memory_bytes", 100);
  ASSERT_TRUE(series.ok());
  ASSERT_THAT(*series, SizeIs(4));  // two steps on two nodes
  for (const Series& one : *series) {
    EXPECT_NE(one.tags.Find("host"), nullptr);
    EXPECT_NE(one.tags.Find("job"), nullptr);
  }
  EXPECT_THAT(*list("", 3), SizeIs(3));
  // The names without the list.
  web::SeriesNames names;
  const auto all = list("", 1000);
  ASSERT_TRUE(all.ok());
  for (const Series& one : *all) names.Add(one);
  const auto found = WaitFor(*source, &web::StepSeries::Names);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->metrics, names.metrics);
  EXPECT_EQ(found->keys, names.keys);
  EXPECT_EQ(found->values, names.values);
  // Those of steps that end meanwhile too, for what was known is kept.
  EXPECT_EQ(WaitFor(*source, &web::StepSeries::Names)->values, names.values);
  Finish("125", kTestStart);
  EXPECT_TRUE(WaitFor(*source, &web::StepSeries::Names)->values.contains("125.0"));
  EXPECT_TRUE(WaitFor(*source, &web::StepSeries::Names)->values.contains("124.0"));
}

// In blocks ranks count from the first one of their node.
TEST_F(ServeTest, NamesHaveTheHostsAndRanksOfAllNodes) {
  const JobDescription job = TestJob("125", kTestStart);
  auto live = LiveArchive::Create(root(), job);
  ASSERT_TRUE(live.ok());
  const auto schema = Schema::Make(
      {TestSeries("task_resident_memory_bytes", MetricType::kGauge, {{"task", "0"}}),
       TestSeries("task_resident_memory_bytes", MetricType::kGauge, {{"task", "1"}}),
       TestSeries("task_io_total", MetricType::kCounter, {{"file", "a"}, {"task", "any"}})});
  for (const auto& [node, group] : {std::pair(0u, "task"), {1u, "task+2"}}) {
    ASSERT_TRUE(
        (*live)
            ->PutBlock({node, group, 1}, *schema, MakeBlock(*schema, TestTimes(0, 1), {1, 2, 3}))
            .ok());
  }
  Profile profile;
  profile.job = job;
  profile.job.state = EndState::kCompleted;
  ASSERT_TRUE((*live)->PutProfile(profile).ok());
  ASSERT_TRUE((*live)->Finish().ok());
  const auto source = OpenSource();
  const auto names = WaitFor(*source, &web::StepSeries::Names);
  ASSERT_TRUE(names.ok());
  for (const char* key : {"task", "file", "host", "job"}) EXPECT_TRUE(names->keys.contains(key));
  for (const char* value : {"0", "1", "2", "3", "any", "a", "n1", "n2", "125.0"}) {
    EXPECT_TRUE(names->values.contains(value)) << value;
  }
  EXPECT_FALSE(names->values.contains("4"));
  EXPECT_TRUE(names->metrics.contains("task_io_total"));
}

TEST_F(ServeTest, AnswersQueriesAboutOneStep) {
  const auto source = OpenSource();
  QuerySpec spec = Memory("123.0");
  const Result<web::Answer> sum = Ask(*source, spec);
  ASSERT_TRUE(sum.ok()) << sum.status().message();
  ASSERT_THAT(sum->results, SizeIs(1));
  EXPECT_EQ(*sum->results[0].tags.Find("job"), "123.0");
  ASSERT_THAT(sum->results[0].points, SizeIs(kTicks));
  for (const Point& point : sum->results[0].points) {
    EXPECT_EQ(point.value, TestMemory(0) + TestMemory(1));
  }
  EXPECT_EQ(sum->nodes_answered, 2u);
  spec.aggregator = Aggregator::kNone;
  EXPECT_THAT(Ask(*source, spec)->results, SizeIs(2));
  EXPECT_THAT(Ask(*source, Memory("9.0"))->results, SizeIs(0));
  spec.end = spec.start - 1;
  EXPECT_EQ(Ask(*source, spec).status().code(), Code::kInvalid);
}

TEST_F(ServeTest, ALostNodesRecordIsNotWhole) {
  Finish("125", kTestStart, 0, /*lost=*/true);
  const auto source = OpenSource();
  QuerySpec spec = Memory("125.0");
  for (const auto aggregator : {Aggregator::kSum, Aggregator::kNone}) {
    spec.aggregator = aggregator;
    const Result<web::Answer> answer = Ask(*source, spec);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->nodes_answered, 1u);
    EXPECT_EQ(answer->nodes_expected, 2u);
  }
}

// The two daemons of a host are one node, so they do not make up for one that is lost.
TEST_F(ServeTest, AHostIsOneNodeThoughItsDaemonWasStartedAnew) {
  Finish("125", kTestStart, 0, /*lost=*/false, /*anew=*/true);
  Finish("126", kTestStart, 0, /*lost=*/true, /*anew=*/true);
  const auto source = OpenSource();
  for (const auto& [job, answered] : {std::pair("125.0", 2u), {"126.0", 1u}}) {
    const Result<web::Answer> answer = Ask(*source, Memory(job));
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->nodes_answered, answered) << job;
    EXPECT_EQ(answer->nodes_expected, 2u) << job;
  }
}

// Steps that a filter names are looked up, others are looked for: both find the same.
TEST_F(ServeTest, FindsTheStepsOfAQueryByNameAndByTime) {
  const auto source = OpenSource();
  QuerySpec spec = Memory("123.0|9.0|124.0|123.0||124|123.1");
  spec.filters[0].group_by = true;
  spec.end = kTestStart + 7200 * kSecond;
  const auto jobs = [&] {
    const Result<web::Answer> answer = Ask(*source, spec);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    std::vector<std::string> found;
    for (const QueryResult& result : answer->results) {
      found.push_back(*result.tags.Find("job"));
      // Each step once, however often it is named.
      EXPECT_EQ(result.points.front().value, TestMemory(0) + TestMemory(1));
    }
    return found;
  };
  const auto check = [&](const std::vector<std::string>& expected) {
    EXPECT_EQ(jobs(), expected);
    const TagFilter named = spec.filters[0];
    spec.filters[0].type = TagFilter::Type::kWildcard;
    spec.filters[0].pattern = "*";
    EXPECT_EQ(jobs(), expected);
    spec.filters[0] = named;
  };
  check({"123.0", "124.0"});
  // A query reads whole hours around its range, and both began with one.
  spec.start = kTestStart + 3600 * kSecond;
  check({"124.0"});
  spec.start = kTestStart + 7200 * kSecond;
  spec.end = kTestStart + 9000 * kSecond;
  check({});
  // Several filters: all of them count.
  spec = Memory("123.0|124.0");
  spec.filters.push_back({TagFilter::Type::kWildcard, "job", "124*", true});
  spec.end = kTestStart + 7200 * kSecond;
  EXPECT_THAT(jobs(), testing::ElementsAre("124.0"));
}

TEST_F(ServeTest, FinishedStepsHaveTheirConclusions) {
  const auto source = OpenSource();
  const auto concluded = [&](const char* step, const std::string& of) {
    std::promise<Result<std::string>> promise;
    source->Conclude(JobStep::Parse(step), of,
                     [&](Result<std::string> answer) { promise.set_value(std::move(answer)); });
    return promise.get_future().get();
  };
  for (const auto& [of, key] : std::map<std::string, std::string>{{"hints", "\"facts\":"},
                                                                  {"budget", "\"ranks\":"},
                                                                  {"phases", "\"found\":"},
                                                                  {"stragglers", "\"metrics\":"},
                                                                  {"periods", "\"metrics\":"},
                                                                  {"roofline", "\"roof\":"},
                                                                  {"energy", "\"joules\":"}}) {
    const auto answer = concluded("123.0", of);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_THAT(*answer, HasSubstr(key)) << of;
    EXPECT_THAT(*answer, HasSubstr("\"step\":\"123.0\"")) << of;
  }
  EXPECT_EQ(concluded("9.0", "hints").status().code(), Code::kNotFound);
  const auto live = LiveArchive::Create(root(), TestJob("4711", Clock::System().Now()));
  ASSERT_TRUE(live.ok());
  EXPECT_THAT(std::string(concluded("4711.0", "hints").status().message()),
              HasSubstr("is running"));
}

TEST_F(ServeTest, ConclusionsAreThoseOfTheCommandsAndOfThePeaksThatAreThere) {
  Served served(root(), {"--port", "0"});
  const Endpoint endpoint = ParseAddress(served.ReadUntil("Ctrl-C"));
  const auto concluded = [&](const std::string& of) {
    return serve::AskHead(endpoint, "/api/v1/insight?job=123.0&of=" + of, 30 * kSecond);
  };
  const auto check = [&](const std::string& of) {
    const auto answer = concluded(of);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    const Outcome command = RunSonde(dir_.path(), of + " --json 123.0");
    ASSERT_EQ(command.code, 0) << command.err;
    EXPECT_EQ(*answer, command.out) << of;
  };
  check("energy");
  check("budget");
  check("roofline");
  EXPECT_THAT(*concluded("roofline"), HasSubstr("were not measured: run `sonde peaks`"));
  insight::NodePeaks peaks;
  peaks.type = {"Some CPU", 8, 1, 3000};
  peaks.allowed = 8;
  peaks.all = peaks.one = {1e11, 1e12, 2e12};
  for (const NodeInfo& node : TestJob("123").nodes) {
    peaks.host = node.host;
    ++peaks.type.sockets;  // or the second would replace the first
    ASSERT_TRUE(insight::KeepPeaks(root() + "/peaks.json", peaks, false).ok());
  }
  EXPECT_THAT(*concluded("roofline"), Not(HasSubstr("were not measured")));
  check("roofline");
  std::ofstream(root() + "/peaks.json") << "{";
  EXPECT_THAT(std::string(concluded("roofline").status().message()), HasSubstr("answers 500"));
}

// What others are shown of a user's archive (serve/site) is not theirs to change.
TEST_F(ServeTest, TagsAreChangedByWhoKeepsTheArchiveAndNobodyElse) {
  const JobStep id{"123", "0"};
  const serve::ArchiveSource reader(*Archive::Open(root()));
  const auto change = [&](const serve::ArchiveSource& source, const UserTags& set) {
    return WaitFor(source, &web::StepHistory::ChangeTags, id, set, std::vector<std::string>());
  };
  EXPECT_EQ(change(reader, {{"a", "1"}}).status().code(), Code::kPermission);
  const auto keeper = OpenSource();
  EXPECT_EQ(change(reader, {{"a", "1"}}).status().code(), Code::kPermission);
  const auto changed = change(*keeper, {{"b", "2"}});
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_EQ(*changed, (UserTags{{"b", "2"}}));
  EXPECT_EQ(WaitFor(reader, &web::StepHistory::GetProfile, id)->job.tags, *changed);
}

TEST_F(ServeTest, DamageThatWasPassedOverIsToldOnceUntilItIsRepaired) {
  { OpenSource(); }
  {
    const auto db = OpenDb(ArchivePaths(root()));
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE((*db)->Put({}, keys::Description(keys::ProfileKey(TestJob("123"))), "?").ok());
  }
  const std::string log = dir_.path() + "/log";
  ASSERT_TRUE(log::Open("sonde", log, log::Level::kInfo).ok());
  const auto source = OpenSource();
  EXPECT_THAT(source->PassedOver(), IsEmpty());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(*WaitFor(*source, &web::StepHistory::Jobs, size_t{10}), SizeIs(2));
    EXPECT_THAT(source->PassedOver(), ElementsAre(HasSubstr("the description of ")));
  }
  const std::string lines = *ReadSmallFile(log, 1 << 20);
  const std::string told = "is damaged, and the rest of it is shown: the description of ";
  EXPECT_THAT(lines, HasSubstr(told));
  EXPECT_EQ(lines.find(told), lines.rfind(told)) << lines;
  EXPECT_TRUE(AskToRepair(root(), nullptr, nullptr).ok());
  EXPECT_THAT(*WaitFor(*source, &web::StepHistory::Jobs, size_t{10}), SizeIs(2));
  EXPECT_THAT(source->PassedOver(), IsEmpty());
  EXPECT_TRUE(log::Open("sonde", "", log::Level::kInfo).ok());
}

TEST_F(ServeTest, AnswersEveryQueryEvenWhenItStops) {
  auto source = OpenSource();
  std::atomic<int> answered = 0;
  constexpr int kQueries = 50;
  for (int i = 0; i < kQueries; ++i) {
    source->Query(Memory("123.0"), [&](Result<web::Answer>) { ++answered; });
  }
  source.reset();
  EXPECT_EQ(answered, kQueries);
}

TEST_F(ServeTest, TheCommandServesUntilItIsTold) {
  Served served(root(), {"--port", "0"});
  const std::string text = served.ReadUntil("Ctrl-C");
  EXPECT_THAT(text, HasSubstr("ssh -L "));
  const Endpoint endpoint = ParseAddress(text);
  const Result<std::string> list = serve::AskHead(endpoint, "/job/list?limit=9", 5 * kSecond);
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_THAT(*list, HasSubstr("\"124.0\""));
  Endpoint stranger = endpoint;
  stranger.token = std::string(endpoint.token.size(), 'x');
  EXPECT_EQ(serve::AskHead(stranger, "/job/list", 5 * kSecond).status().code(), Code::kPermission);
  EXPECT_EQ(served.Stop(), 0);
}

TEST_F(ServeTest, TheTokenFileMustBePrivate) {
  const std::string path = dir_.path() + "/token";
  std::ofstream(path) << "0123456789abcdefghij\n";
  chmod(path.c_str(), 0644);
  EXPECT_EQ(Served(root(), {"--port", "0", "--token-file", path}).Wait(), 1);
  chmod(path.c_str(), 0600);
  Served served(root(), {"--port", "0", "--token-file", path});
  const Endpoint endpoint = ParseAddress(served.ReadUntil("Ctrl-C"));
  EXPECT_EQ(endpoint.token, "0123456789abcdefghij");
  EXPECT_TRUE(serve::AskHead(endpoint, "/job/list", 5 * kSecond).ok());
}

}  // namespace
}  // namespace sonde::cli::cli_serve_test
