// The first scrape of a target: what an exporter is, and what a metric-proxy.
#include "cli/join/scrape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "tests/unit/loopback.h"

namespace sonde::join::scrape_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kMetrics[] = "# TYPE load gauge\nload 2\n";
constexpr char kSnapshot[] = R"({"desc":{"jobid":"main"},"counters":[)"
                             R"({"name":"load","doc":"","ctype":{"Counter":{"ts":1,"value":3}}}]})";
constexpr char kPage[] = "<html><body><a href=\"/metrics\">Metrics</a></body></html>";

std::string Answer(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
const std::string kNotFound = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

// Answers each request with what `answer` makes of its path; with nothing, it only closes.
class HttpPeer {
 public:
  using AnswerTo = std::function<std::string(const std::string& path)>;
  explicit HttpPeer(AnswerTo answer) : answer_(std::move(answer)), thread_([this] { Serve(); }) {}
  ~HttpPeer() {
    shutdown(listener_.fd.get(), SHUT_RDWR);
    thread_.join();
  }
  HttpPeer(const HttpPeer&) = delete;
  HttpPeer& operator=(const HttpPeer&) = delete;

  web::ScrapeTarget Target() const {
    return {"127.0.0.1", std::to_string(listener_.port), "/metrics"};
  }

 private:
  void Serve() {
    for (;;) {
      const UniqueFd peer(accept(listener_.fd.get(), nullptr, nullptr));
      if (!peer) return;
      char request[4096];
      std::string got;
      while (got.find("\r\n\r\n") == std::string::npos) {
        const ssize_t size = recv(peer.get(), request, sizeof request, 0);
        if (size <= 0) break;
        got.append(request, static_cast<size_t>(size));
      }
      const size_t path = got.find(' ') + 1;
      const std::string text = answer_(got.substr(path, got.find(' ', path) - path));
      static_cast<void>(send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL));
    }
  }

  const AnswerTo answer_;
  const LoopbackListener listener_{8};
  std::thread thread_;
};

constexpr size_t kMaxBytes = 1u << 20;
constexpr Nanos kMinute = 60 * kSecond;
constexpr FirstLimits kPatient{kMinute, kMinute, kMaxBytes};

TEST(FirstScrape, AMetricProxyIsKnownByItsSnapshot) {
  const HttpPeer proxy([](const std::string& path) {
    if (path == "/is_admire_proxy.html") return Answer("<html></html>");
    return path == "/job?job=main" ? Answer(kSnapshot) : kNotFound;
  });
  const Result<Found> first = Find(proxy.Target(), kPatient);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->target.path, "/job?job=main");
  EXPECT_EQ(first->scraped.kind, Kind::kProxy);
  EXPECT_THAT(first->scraped.text, HasSubstr("load 3"));
}

// Go's catch-all page, a program with a REST interface, and Python's client, whose metrics are at
// every path.
TEST(FirstScrape, AnExporterThatAnswersEveryPathIsNoProxy) {
  for (const char* elsewhere : {kPage, R"({"status":"ok"})", "[]", "{", "", kMetrics}) {
    const HttpPeer exporter(
        [&](const std::string& path) { return Answer(path == "/metrics" ? kMetrics : elsewhere); });
    const Result<Found> first = Find(exporter.Target(), kPatient);
    ASSERT_TRUE(first.ok()) << elsewhere << ": " << first.status().message();
    EXPECT_EQ(first->target.path, "/metrics") << elsewhere;
    EXPECT_EQ(first->scraped.kind, Kind::kPrometheus) << elsewhere;
    EXPECT_EQ(first->scraped.text, kMetrics) << elsewhere;
  }
}

TEST(FirstScrape, AnExporterMayCloseOtherPathsWithoutAnAnswer) {
  const HttpPeer exporter([](const std::string& path) {
    return path == "/metrics" ? Answer(kMetrics) : std::string();
  });
  const Result<Found> first = Find(exporter.Target(), kPatient);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->target.path, "/metrics");
}

// The kernel takes its connections; nobody reads them.
TEST(FirstScrape, ATargetThatIsSilentIsAskedOnce) {
  const LoopbackListener silent(8);
  const web::ScrapeTarget target{"127.0.0.1", std::to_string(silent.port), "/metrics"};
  const Result<Found> first = Find(target, {kMinute, kSecond / 2, kMaxBytes});
  EXPECT_EQ(first.status().code(), Code::kTimeout);
  EXPECT_THAT(std::string(first.status().message()),
              StartsWith("scrape " + target.Url() + ": no answer in "));
  int connections = 0;
  pollfd waiting{silent.fd.get(), POLLIN, 0};
  while (poll(&waiting, 1, 0) == 1) {
    const UniqueFd peer(accept(silent.fd.get(), nullptr, nullptr));
    ++connections;
  }
  EXPECT_EQ(connections, 1);
}

// Its page answers, and then nothing does: what was asked for last has the rest of the time.
TEST(FirstScrape, AllThatIsAskedHasOneTime) {
  std::promise<void> over;
  const std::shared_future<void> wait = over.get_future().share();
  std::atomic<int> asked = 0;
  {
    const HttpPeer hangs([&](const std::string& path) {
      ++asked;
      if (path == "/is_admire_proxy.html") return Answer(kPage);
      wait.wait();
      return std::string();
    });
    const Result<Found> first = Find(hangs.Target(), {kMinute, kSecond / 2, kMaxBytes});
    EXPECT_EQ(first.status().code(), Code::kTimeout) << first.status().message();
    EXPECT_LE(asked, 2);
    over.set_value();
  }
}

TEST(FirstScrape, ATargetThatIsNotThereIsTheReason) {
  web::ScrapeTarget target{"127.0.0.1", "", "/metrics"};
  target.port = std::to_string(LoopbackListener(1).port);
  const Result<Found> first = Find(target, kPatient);
  EXPECT_EQ(first.status().code(), Code::kUnavailable);
  EXPECT_THAT(std::string(first.status().message()),
              HasSubstr(target.Url() + ": Connection refused"));
}

}  // namespace
}  // namespace sonde::join::scrape_test
