// Programs for metric-proxy at the daemon's socket: what is recorded of them, and what they cannot
// do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/socket_file.h"
#include "daemon/collect/proxy/proxy.h"
#include "tests/unit/in_child.h"
#include "tests/unit/temp_dir.h"

namespace sonde::collect {
namespace {

using namespace std::string_literals;

std::string Counted(const std::string& name, double by) {
  return R"({"Value":{"name":")" + name + R"(","value":{"Counter":{"ts":1,"value":)" +
         std::to_string(by) + "}}}}\0"s;
}

std::string Set(const std::string& name, double to) {
  const std::string text = std::to_string(to);
  return R"({"Value":{"name":")" + name + R"(","value":{"Gauge":{"min":)" + text + R"(,"max":)" +
         text + R"(,"hits":1.0,"total":)" + text + "}}}}\0"s;
}

std::string Described(const std::string& name, const std::string& help, const std::string& type) {
  return R"({"Desc":{"name":")" + name + R"(","doc":")" + help + R"(","ctype":)" +
         (type == "Counter" ? R"({"Counter":{"ts":0,"value":0.0}})"
                            : R"({"Gauge":{"min":0.0,"max":0.0,"hits":0.0,"total":0.0}})") +
         "}}\0"s;
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

SocketFile Listen(const std::string& path) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = AddressOf(path);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::listen(socket.get(), 64), 0);
  return SocketFile(std::move(socket));
}

// A program's end of the connection. Nothing here waits.
class Program {
 public:
  explicit Program(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const sockaddr_un address = AddressOf(path);
    connected_ =
        ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  bool connected() const { return connected_; }
  // How many bytes there was room for; -1: nobody reads them.
  ssize_t Send(std::string_view bytes) const {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void Close() { socket_.Reset(); }

 private:
  UniqueFd socket_;
  bool connected_ = false;
};

class MetricProxy : public testing::Test {
 protected:
  MetricProxy() : path_(directory_.path() + "/proxy") {
    options_.uid = ::geteuid();
    options_.proc = directory_.path() + "/proc";
  }

  void Start() {
    auto source = ProxySource::Open(options_, Listen(path_));
    ASSERT_TRUE(source.ok()) << source.status().message();
    source_ = *std::move(source);
  }
  // Programs that connect from now on have this rank, which their environment says; -1: it cannot
  // be read.
  void SetRank(int rank) const {
    const std::string own = options_.proc + "/" + std::to_string(::getpid());
    std::filesystem::remove_all(own);
    if (rank < 0) return;
    std::filesystem::create_directories(own);
    std::ofstream(own + "/environ") << "A=B\0SLURM_PROCID="s << rank << '\0';
  }
  // As the loop does.
  void PollAll() const {
    for (pollfd waits{source_->fd(), POLLIN, 0}; ::poll(&waits, 1, 0) == 1;) source_->Poll();
  }
  // The value of a series; -1 if there is none.
  double Read(const std::string& name) const {
    PollAll();
    EXPECT_EQ(source_->series().size(), source_->values().size());
    for (size_t i = 0; i < source_->series().size(); ++i) {
      const Series& series = source_->series()[i];
      if (SeriesName(series.metric.name, series.tags) == name) return source_->values()[i];
    }
    return -1;
  }

  TempDir directory_;
  const std::string path_;
  ProxySource::Options options_;
  std::unique_ptr<ProxySource> source_;
};

TEST_F(MetricProxy, CountersAddUpAndGaugesHaveTheLastValue) {
  Start();
  const Program app(path_);
  app.Send("{\"JobDesc\":{\"jobid\":\"7-0\",\"size\":1}}\0"s +
           Described("steps", "Time steps", "Counter") + Described("load", "", "Gauge"));
  EXPECT_EQ(Read("steps{task=\"0\"}"), 0);
  EXPECT_TRUE(std::isnan(Read("load{task=\"0\"}"))) << "it was never set";
  const uint32_t generation = source_->generation();
  app.Send(Counted("steps", 2) + Set("load", 1.5));
  app.Send(Counted("steps", 0.25) + Set("load", -2));
  EXPECT_EQ(Read("steps{task=\"0\"}"), 2.25);
  EXPECT_EQ(Read("load{task=\"0\"}"), -2);
  EXPECT_EQ(source_->generation(), generation);
  EXPECT_EQ(source_->group(), Group::kApp);
  const Metric& steps = source_->series()[0].metric;
  EXPECT_EQ(steps.type, MetricType::kCounter);
  EXPECT_EQ(steps.help, "Time steps");
  EXPECT_EQ(steps.reduction, Reduction::kSum);
  EXPECT_EQ(source_->series()[1].metric.reduction, Reduction::kMean);
}

TEST_F(MetricProxy, AValueWithoutItsMetricCounts) {
  Start();
  const Program app(path_);
  app.Send(Counted("steps", 1) + Set("load", 3));
  EXPECT_EQ(Read("steps{task=\"0\"}"), 1);
  EXPECT_EQ(Read("load{task=\"0\"}"), 3);
}

TEST_F(MetricProxy, CountersNeverFall) {
  Start();
  const Program app(path_);
  app.Send(Counted("n", 5) + Counted("n", -2));
  app.Send("{\"Value\":{\"name\":\"n\",\"value\":{\"Counter\":{\"ts\":1,\"value\":null}}}}\0"s);
  for (int i = 0; i < 2; ++i) {
    app.Send(
        "{\"Value\":{\"name\":\"n\",\"value\":{\"Counter\":{\"ts\":1,\"value\":1.7e308}}}}\0"s);
  }
  app.Send(Set("g", 4));
  app.Send(
      "{\"Value\":{\"name\":\"g\",\"value\":{\"Gauge\":{\"min\":0,\"max\":0,\"hits\":1,\"total\":null}}}}\0"s);
  EXPECT_EQ(Read("n{task=\"0\"}"), 1.7e308);
  EXPECT_EQ(Read("g{task=\"0\"}"), 4);
}

TEST_F(MetricProxy, MessagesComeInAnyPieces) {
  Start();
  const Program app(path_);
  const std::string text = Counted("n", 1) + Counted("n", 10) + Counted("n", 100);
  for (const char byte : text) {
    app.Send({&byte, 1});
    PollAll();
  }
  EXPECT_EQ(Read("n{task=\"0\"}"), 111);
}

TEST_F(MetricProxy, RanksStayApartAndProcessesOfOneRankTogether) {
  Start();
  SetRank(1);
  const Program one(path_);
  PollAll();
  SetRank(2);
  Program two(path_), other_two(path_);
  PollAll();
  one.Send(Counted("n", 1) + Set("g", 1));
  two.Send(Counted("n", 10) + Set("g", 2));
  PollAll();
  other_two.Send(Counted("n", 100) + Set("g", 3));
  PollAll();
  two.Close();
  EXPECT_EQ(Read("n{task=\"1\"}"), 1);
  EXPECT_EQ(Read("n{task=\"2\"}"), 110) << "what a process counted stays when it has ended";
  EXPECT_EQ(Read("g{task=\"1\"}"), 1);
  EXPECT_EQ(Read("g{task=\"2\"}"), 3) << "that which came last";
  EXPECT_EQ(source_->programs(), 2u);
}

// A task may have ended before its environment can be read.
TEST_F(MetricProxy, TheLauncherTellsTheRankOfAProcessWhoseEnvironmentDoesNot) {
  Start();
  SetRank(-1);
  Program nobodys(path_);
  nobodys.Send(Counted("n", 1));
  EXPECT_EQ(Read("n{task=\"0\"}"), 1);
  source_->AddTask(7, 1);
  nobodys.Send(Counted("n", 1));
  EXPECT_EQ(Read("n{task=\"7\"}"), 1) << "there is no other task here";
  source_->AddTask(8, ::getpid());
  nobodys.Send(Counted("n", 1));
  EXPECT_EQ(Read("n{task=\"8\"}"), 1);
}

TEST_F(MetricProxy, AProgramThatEndsAtOnceIsRecorded) {
  Start();
  for (int i = 0; i < 3; ++i) {
    Program app(path_);
    app.Send(Counted("n", 1));
  }
  source_->Close();
  EXPECT_EQ(source_->values()[0], 3);
  EXPECT_EQ(source_->programs(), 0u);
}

TEST_F(MetricProxy, NobodyComesInAfterTheEnd) {
  Start();
  const Program early(path_);
  PollAll();
  EXPECT_TRUE(std::filesystem::exists(path_));
  source_->Close();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(early.Send(Counted("n", 1)), -1) << "a program would wait for us";
  EXPECT_EQ(source_->fd(), -1);
  source_->Close();
}

TEST_F(MetricProxy, AProgramThatBreaksTheProtocolIsDroppedAlone) {
  Start();
  const Program good(path_);
  uint64_t dropped = 0;
  for (const std::string& text : {"\0"s, "hello\0"s, "{\"Value\":{}}\0"s, "{} {}\0"s}) {
    const Program bad(path_);
    bad.Send(text + Counted("bad", 1));
    good.Send(Counted("n", 1));
    EXPECT_EQ(Read("n{task=\"0\"}"), static_cast<double>(++dropped)) << text;
    EXPECT_EQ(source_->counts().dropped, dropped) << text;
    EXPECT_EQ(source_->programs(), 1u) << text;
    EXPECT_EQ(bad.Send(text), -1) << "it is told that nobody reads";
  }
  EXPECT_EQ(Read("bad{task=\"0\"}"), -1);
}

TEST_F(MetricProxy, AMessageThatIsTooLongIsPassedOver) {
  options_.max_message = 1000;
  Start();
  const Program app(path_);
  // Without an end it takes no memory either.
  for (int i = 0; i < 100; ++i) {
    app.Send(std::string(10'000, 'x'));
    PollAll();
  }
  app.Send("\0"s + Counted("n", 1));
  EXPECT_EQ(Read("n{task=\"0\"}"), 1);
  EXPECT_EQ(source_->counts().too_long, 1u);
  app.Send("{\"JobDesc\":{\"command\":\"" + std::string(2000, 'x') + "\"}}\0"s + Counted("n", 1));
  EXPECT_EQ(Read("n{task=\"0\"}"), 2);
  EXPECT_EQ(source_->counts().too_long, 1u) << "nothing is lost with a long command line";
  source_->Sample(kSecond);
  EXPECT_THAT(source_->TakeNotes(),
              testing::ElementsAre(testing::HasSubstr("more than 1000 bytes")));
}

TEST_F(MetricProxy, OnlySoManyProgramsAtATime) {
  options_.max_programs = 2;
  Start();
  Program one(path_), two(path_);
  PollAll();
  const Program three(path_);
  PollAll();
  EXPECT_EQ(source_->counts().refused, 1u);
  EXPECT_EQ(three.Send("x"), -1);
  source_->Sample(kSecond);
  EXPECT_THAT(source_->TakeNotes(), testing::ElementsAre(testing::HasSubstr("connected already")));
  one.Close();
  PollAll();
  const Program four(path_);
  four.Send(Counted("n", 1));
  EXPECT_EQ(Read("n{task=\"0\"}"), 1);
}

TEST_F(MetricProxy, OnlySoManyMetricsWithSuchNames) {
  options_.max_metrics = 3;
  options_.max_name = 50;
  Start();
  const Program app(path_);
  app.Send(Counted(std::string(51, 'x'), 1));
  PollAll();
  EXPECT_EQ(source_->left_out(), 1u);
  for (int i = 0; i < 10; ++i) app.Send(Counted("n" + std::to_string(i), 1));
  app.Send(Counted("n2", 1));
  EXPECT_EQ(Read("n2{task=\"0\"}"), 2) << "those that are there go on";
  EXPECT_EQ(source_->series().size(), 3u);
  EXPECT_EQ(source_->left_out(), 8u);
  EXPECT_THAT(source_->TakeNotes(), testing::ElementsAre(testing::HasSubstr("a name has 51 bytes")))
      << "once";
}

TEST_F(MetricProxy, OnlySoMuchText) {
  options_.max_text = 100;
  Start();
  const Program app(path_);
  app.Send(Described("n", std::string(200, 'x'), "Counter") + Counted("m", 1));
  EXPECT_EQ(Read("m{task=\"0\"}"), 1);
  EXPECT_EQ(Read("n{task=\"0\"}"), -1);
}

TEST_F(MetricProxy, ACounterIsNoGauge) {
  Start();
  const Program app(path_);
  app.Send(Counted("n", 1) + Set("n", 7) + Counted("n", 1));
  EXPECT_EQ(Read("n{task=\"0\"}"), 2);
  EXPECT_EQ(source_->left_out(), 1u);
}

TEST_F(MetricProxy, NamesOfTheSameMeaningAreOneSeries) {
  Start();
  const Program app(path_);
  app.Send(Counted("n{a=\\\"1\\\",b=\\\"2\\\"}", 1) + Counted("n{b=\\\"2\\\",a=\\\"1\\\"}", 2));
  EXPECT_EQ(Read("n{a=\"1\",b=\"2\",task=\"0\"}"), 3);
}

// One program must not keep the daemon from all else.
TEST_F(MetricProxy, AFloodIsReadInTurns) {
  Start();
  const Program flood(path_);
  PollAll();
  std::string many;
  while (many.size() < 100'000) many += Counted("flood", 1);
  ASSERT_GT(flood.Send(many), 50'000);
  const Program other(path_);
  source_->Poll();
  source_->Poll();
  ASSERT_EQ(source_->series().size(), 1u);
  const double messages = source_->values()[0];
  EXPECT_LE(messages * static_cast<double>(Counted("flood", 1).size()), 33'000);
  other.Send(Counted("n", 1));
  source_->Poll();
  EXPECT_EQ(source_->series().size(), 2u) << "it has its turn before all of the flood was read";
}

TEST_F(MetricProxy, WithoutRoomForDescriptorsItWaitsForTheNextTick) {
  EXPECT_EQ(InChild([this] {
              Start();
              const Program app(path_);
              app.Send(Counted("n", 1));
              rlimit before{};
              ::getrlimit(RLIMIT_NOFILE, &before);
              const int next = ::dup(0);
              ::close(next);
              rlimit none{static_cast<rlim_t>(next), before.rlim_max};
              ::setrlimit(RLIMIT_NOFILE, &none);
              PollAll();  // would never end
              EXPECT_EQ(source_->programs(), 0u);
              ::setrlimit(RLIMIT_NOFILE, &before);
              PollAll();
              EXPECT_EQ(source_->programs(), 0u);
              source_->Sample(kSecond);
              EXPECT_EQ(Read("n{task=\"0\"}"), 1);
            }),
            0);
}

TEST_F(MetricProxy, AnotherUsersProcessIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Start();
  ::chmod(directory_.path().c_str(), 0755);
  ::chmod(path_.c_str(), 0777);
  EXPECT_EQ(InChild([this] {
              ASSERT_EQ(::setresuid(65534, 65534, 65534), 0);
              const Program app(path_);
              EXPECT_TRUE(app.connected());
              EXPECT_GT(app.Send(Counted("n", 1)), 0);
            }),
            0);
  PollAll();
  EXPECT_EQ(source_->counts().refused, 1u);
  EXPECT_EQ(source_->programs(), 0u);
}

TEST(SocketFiles, GoWithTheirOwner) {
  const TempDir directory;
  const std::string path = directory.path() + "/socket";
  {
    SocketFile first = Listen(path);
    EXPECT_EQ(first.path(), path);
    const SocketFile second = std::move(first);
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_TRUE(second);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(SocketFile(UniqueFd(::socket(AF_UNIX, SOCK_STREAM, 0)))) << "it has no name";
  EXPECT_FALSE(SocketFile(UniqueFd(::dup(0))));
  EXPECT_FALSE(SocketFile(UniqueFd()));
}

}  // namespace
}  // namespace sonde::collect
