// /api/live: what its parameters mean, and the events themselves through a socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <thread>

#include "tests/unit/web_client.h"
#include "web/live/live.h"

namespace sonde::web::web_live_test {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Live, PatternsAreGlobs) {
  for (const auto& [pattern, name] : {std::pair("*", ""),
                                      {"*", "a.b"},
                                      {"node_*", "node_load1"},
                                      {"*_total", "a_total"},
                                      {"a*b*c", "aXbYbZc"},
                                      {"node_load?", "node_load1"},
                                      {"a", "a"},
                                      {"**", "x"}}) {
    EXPECT_TRUE(MatchesGlob(pattern, name)) << pattern << " " << name;
  }
  for (const auto& [pattern, name] : {std::pair("", "a"),
                                      {"a", ""},
                                      {"node_*", "anode_x"},
                                      {"a*b", "abc"},
                                      {"?", ""},
                                      {"node_load?", "node_load15"}}) {
    EXPECT_FALSE(MatchesGlob(pattern, name)) << pattern << " " << name;
  }
  // Without backtracking over every star: this would not end.
  std::string pattern, name(2000, 'a');
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesGlob(pattern + "b", name));
}

Status StatusOf(std::string_view target) {
  Request request;
  EXPECT_TRUE(ParseTarget(target, request).ok());
  return ParseLiveRequest(request).status();
}

TEST(Live, MistakesAreNamed) {
  EXPECT_TRUE(
      StatusOf("/api/live?metric=a,b&metric=c*&m=sum:rate:x%7Bhost=*%7D&alarms=false").ok());
  EXPECT_THAT(std::string(StatusOf("/api/live?m=sum:1m-avg:x").message()), HasSubstr("downsample"));
  EXPECT_FALSE(StatusOf("/api/live?m=nonsense").ok());
  EXPECT_FALSE(StatusOf("/api/live?alarms=perhaps").ok());
  std::string many = "/api/live?metric=x";
  for (size_t i = 0; i < kMaxLiveMetrics; ++i) many += ",x";
  EXPECT_FALSE(StatusOf(many).ok());
  for (const char* id : {"-1", "1.5", "x", "99999999999999999999", "1 "}) {
    EXPECT_FALSE(ParseEventId(id).ok()) << id;
  }
  EXPECT_EQ(*ParseEventId("1800000000000000000"), 1'800'000'000 * kSecond);
}

struct Event {
  std::string name;
  std::string id;
  json::value data;
};

class LiveTest : public ServerTest {
 protected:
  // The stream's beginning is answered, and its first event says what it is.
  std::unique_ptr<Client> Listen(const std::string& target, const std::string& more = "") {
    auto client = std::make_unique<Client>(server_->port());
    client->Send(Get(target, more));
    const std::string header = client->ReceiveTo("\r\n\r\n");
    EXPECT_THAT(header, StartsWith("HTTP/1.1 200 "));
    EXPECT_THAT(header, HasSubstr("Content-Type: text/event-stream"));
    // Proxies that compress, as code-server does, or collect, as nginx does, would hold events
    // back.
    EXPECT_THAT(header, HasSubstr("Cache-Control: no-store, no-transform\r\n"));
    EXPECT_THAT(header, HasSubstr("X-Accel-Buffering: no\r\n"));
    return client;
  }
  // The next event, out of its chunks.
  static Event Next(Client& client) {
    std::string text = client.ReceiveTo("\n\n");
    Event event;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      if (line.starts_with("event: ")) event.name = line.substr(7);
      if (line.starts_with("id: ")) event.id = line.substr(4);
      if (line.starts_with("data: ")) event.data = json::parse(line.substr(6));
    }
    return event;
  }
  static Event Next(Client& client, std::string_view name) {
    for (Event event = Next(client);; event = Next(client)) {
      if (event.name == name || event.name.empty()) return event;
    }
  }
  static double TimeOf(const Event& event) { return event.data.at("time").to_number<double>(); }
};

TEST_F(LiveTest, EachTickIsAnEventUntilTheEnd) {
  source_->SetLiveRows(100);
  Start();
  const auto client = Listen("/api/live?metric=node_load*,task_*&job=4712.0");
  const Event step = Next(*client);
  EXPECT_EQ(step.name, "step");
  EXPECT_EQ(step.data.at("period").to_number<double>(), 1);
  const Event first = Next(*client, "tick");
  source_->Tick();
  const Event second = Next(*client, "tick");
  EXPECT_EQ(TimeOf(second) - TimeOf(first), 1);
  EXPECT_EQ(std::stoll(second.id), static_cast<int64_t>(TimeOf(second)) * kSecond);
  const json::array& series = second.data.at("series").as_array();
  ASSERT_EQ(series.size(), 5U);
  EXPECT_EQ(series[0].at("metric"), "node_load1");
  EXPECT_EQ(series[0].at("count"), 2);
  EXPECT_LT(series[0].at("min").to_number<double>(), series[0].at("max").to_number<double>());
  source_->EndLive();
  const Event end = Next(*client, "end");
  EXPECT_EQ(end.data.at("profile"), "/api/v1/profile?job=4712.0");
  EXPECT_TRUE(client->SeesClose());
}

TEST_F(LiveTest, QueriesAreAskedAtEachTick) {
  source_->SetLiveRows(100);
  Start();
  const auto client =
      Listen("/api/live?m=max:node_load1%7Bhost=*%7D&m=sum:rate:solver_iterations_total");
  source_->Tick();
  const Event event = Next(*client, "tick");
  const json::array& queries = event.data.at("queries").as_array();
  ASSERT_EQ(queries.size(), 3U);
  EXPECT_EQ(queries[0].at("tags").at("host"), "n1");
  EXPECT_EQ(queries[2].at("index"), 1);
  EXPECT_EQ(queries[2].at("value"), 24);
}

TEST_F(LiveTest, GoesOnBehindTheLastEventId) {
  source_->SetLiveRows(100);
  Start();
  const int64_t start = Clock::System().Now() / kSecond - 300;
  const auto first = Listen("/api/live?metric=node_load1");
  const Event last = Next(*first, "tick");
  EXPECT_NEAR(TimeOf(last), static_cast<double>(start + 99), 2);
  for (int i = 0; i < 70; ++i) source_->Tick();
  const auto again = Listen("/api/live?metric=node_load1", "Last-Event-ID: " + last.id + "\r\n");
  for (int i = 1; i <= 70; ++i) EXPECT_EQ(TimeOf(Next(*again, "tick")) - TimeOf(last), i);
}

TEST_F(LiveTest, WhatIsHeldNoMoreIsLostAndTheReaderIsTold) {
  source_->SetLiveRows(100);
  Start();
  const auto client = Listen("/api/live?last_event_id=1000000000");
  Next(*client, "step");
  const Event lost = Next(*client);
  EXPECT_EQ(lost.name, "lost");
  EXPECT_GT(lost.data.at("ticks").to_number<int64_t>(), 1'000'000);
  EXPECT_EQ(Next(*client).name, "tick");
}

// The kernel takes a few hundred kB of what a reader does not read; then ticks pile up.
TEST_F(LiveTest, ASlowReaderLosesTicksAndIsTold) {
  source_->SetLiveRows(2);
  Start();
  auto client = std::make_unique<Client>(server_->port());
  client->ShrinkReceiveBuffer();
  client->Send(Get("/api/live?metric=*"));
  EXPECT_EQ(Next(*client, "tick").name, "tick");
  for (int i = 0; i < 20'000; ++i) source_->Tick();
  Event event = Next(*client);
  int64_t told = 0, lost = 0;
  for (; event.name == "tick" || event.name == "note"; event = Next(*client)) {
    told += event.name == "tick" ? 1 : 0;
  }
  ASSERT_EQ(event.name, "lost");
  lost = event.data.at("ticks").to_number<int64_t>();
  EXPECT_GT(lost, 100);
  EXPECT_LE(told + lost, 20'001);
  EXPECT_EQ(Next(*client, "tick").name, "tick");
}

TEST_F(LiveTest, AlarmsAndNotesAreEvents) {
  source_->SetLiveRows(2);
  Start();
  const auto client = Listen("/api/live?last_event_id=" +
                             std::to_string((Clock::System().Now() / kSecond - 300) * kSecond));
  const Event note = Next(*client, "note");
  EXPECT_EQ(note.data.at("description"), "setup");
  EXPECT_EQ(note.data.at("custom").at("kind"), "phase");
}

TEST_F(LiveTest, AFinishedStepEndsAtOnceAndAnUnknownOneIsNotThere) {
  Start();
  const auto client = Listen("/api/live?job=4711.0");
  EXPECT_EQ(Next(*client).name, "end");
  EXPECT_TRUE(client->SeesClose());
  EXPECT_THAT(Exchange(Get("/api/live?job=99.0")), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Exchange(Get("/api/live?m=x")), StartsWith("HTTP/1.1 400 "));
}

TEST_F(LiveTest, EndsWithTheServer) {
  source_->SetLiveRows(100);
  Start();
  const auto client = Listen("/api/live");
  EXPECT_EQ(Next(*client, "tick").name, "tick");
  std::thread stopping([this] { server_.reset(); });
  EXPECT_EQ(Next(*client, "end").name, "end");
  stopping.join();
}

TEST_F(LiveTest, StreamsAreBoundedAndLeaveRoomForQuestions) {
  options_.limits.feeds = 2;
  options_.limits.connections = 13;  // those that the server has not seen closed yet count, too
  source_->SetLiveRows(100);
  Start();
  const auto first = Listen("/api/live"), second = Listen("/api/live");
  EXPECT_THAT(Exchange(Get("/api/live")), StartsWith("HTTP/1.1 503 "));
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
  }
  source_->Tick();
  EXPECT_EQ(Next(*first, "tick").name, "tick");
}

TEST_F(LiveTest, AHeartbeatTellsThatItIsThere) {
  // The source tells of no tick; the clock decides.
  options_.limits.heartbeat = 10 * kMillisecond;
  source_->SetLiveRows(100);
  Start();
  const auto client = Listen("/api/live");
  EXPECT_EQ(Next(*client, "tick").name, "tick");
  EXPECT_EQ(client->ReceiveTo(":\n\n").ends_with(":\n\n"), true);
}

}  // namespace
}  // namespace sonde::web::web_live_test
