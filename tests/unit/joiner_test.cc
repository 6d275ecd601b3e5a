// Exporters that a node scrapes for the head, each by a child process: here a script, which says
// what sonde join would, and ends when the test lets it.
#include "daemon/node/joiner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/temp_dir.h"

namespace sonde::node::joiner_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using tree::JoinedMessage;

constexpr Nanos kPatience = 20 * kSecond;

// It does not end by SIGTERM alone, as sonde join does not while it scrapes. SONDE_SOCKET is the
// test's directory: "end" is a pipe with a word for each child that is to end.
constexpr char kChild[] = R"(#!/bin/sh
trap '' TERM
[ -e "$SONDE_SOCKET/refused" ] && { echo "down connection refused" >&3; exit 1; }
echo "up Prometheus${SONDE_JOIN_AGAIN:+Again} $6" >&3
read word < "$SONDE_SOCKET/end"
[ "$word" = again ] && { echo "down it hangs" >&3; echo "up Prometheus $6" >&3; }
exit 0
)";

class JoinerTest : public testing::Test, public Joiner::Owner {
 protected:
  void SetUp() override {
    const std::string script = dir_.path() + "/sonde";
    std::ofstream(script) << kChild;
    ASSERT_EQ(chmod(script.c_str(), 0700), 0);
    const std::string end = dir_.path() + "/end";
    ASSERT_EQ(mkfifo(end.c_str(), 0600), 0);
    end_ = UniqueFd(open(end.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(end_);
    joiner_.emplace(loop_, dir_.path(), 1, *this, script);
  }
  static web::ScrapeTarget Target(const char* port = "9100", Nanos every = kSecond) {
    return {"localhost", port, "/metrics", every};
  }
  static std::string Text(const web::ScrapeTarget& target) { return web::EncodeScrape(target); }

  void OnJoined(const JoinedMessage& exporter) override {
    said_.push_back(exporter);
    if (waiting_) loop_.Stop();
  }
  void Note(std::string text) override { notes_.push_back(std::move(text)); }

  // The next thing that is said of an exporter.
  JoinedMessage Next() {
    if (said_.empty()) {
      const Loop::TimerId late = loop_.After(kPatience, [this] { loop_.Stop(); });
      waiting_ = true;
      loop_.Run();
      waiting_ = false;
      loop_.Cancel(late);
    }
    if (said_.empty()) {
      ADD_FAILURE() << "nothing was said";
      return {};
    }
    const JoinedMessage first = said_.front();
    said_.pop_front();
    return first;
  }
  // A child that waits for the word, or will, goes on.
  void Tell(const std::string& word) {
    const std::string line = word + "\n";
    ASSERT_EQ(write(end_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }

  TempDir dir_;
  UniqueFd end_;
  Loop loop_;
  std::deque<JoinedMessage> said_;
  std::vector<std::string> notes_;
  bool waiting_ = false;
  std::optional<Joiner> joiner_;
};

TEST_F(JoinerTest, AnExporterIsScrapedUntilItIsNotWantedAnyMore) {
  joiner_->Start(Text(Target()));
  const JoinedMessage up = Next();
  EXPECT_EQ(up.state, JoinedMessage::kUp);
  EXPECT_EQ(up.target, Text(Target()));
  EXPECT_EQ(up.url, "http://localhost:9100/metrics");
  EXPECT_EQ(up.kind, "Prometheus");
  // Again: it is scraped already.
  joiner_->Start(Text(Target()));
  EXPECT_EQ(Next().state, JoinedMessage::kUp);
  joiner_->Stop(Text(Target()));
  Tell("end");
  EXPECT_EQ(Next().state, JoinedMessage::kGone);
  EXPECT_THAT(notes_, IsEmpty());
}

// While the child of the first ends, which may take as long as a scrape.
TEST_F(JoinerTest, OneThatIsWantedAgainWhileItEndsIsScrapedAgain) {
  joiner_->Start(Text(Target()));
  EXPECT_EQ(Next().state, JoinedMessage::kUp);
  joiner_->Stop(Text(Target()));
  const std::string again = Text(Target("9100", 5 * kSecond));
  joiner_->Start(again);
  EXPECT_THAT(said_, IsEmpty()) << "of the child that ends";
  joiner_->TellAll();
  EXPECT_THAT(said_, IsEmpty()) << "of the child that ends";
  Tell("again");
  const JoinedMessage up = Next();
  EXPECT_EQ(up.state, JoinedMessage::kUp) << "what the child that ends says does not count";
  EXPECT_EQ(up.target, again);
  EXPECT_EQ(up.kind, "PrometheusAgain") << "it knows that its counts are in the record";
  // That is the new child, which ends as any other does.
  joiner_->Stop(again);
  Tell("end");
  EXPECT_EQ(Next().state, JoinedMessage::kGone);
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(JoinerTest, TheLastWordCounts) {
  joiner_->Start(Text(Target()));
  EXPECT_EQ(Next().state, JoinedMessage::kUp);
  joiner_->Stop(Text(Target()));
  joiner_->Start(Text(Target()));
  joiner_->Stop(Text(Target()));
  Tell("end");
  EXPECT_EQ(Next().state, JoinedMessage::kGone);
}

TEST_F(JoinerTest, OneThatIsWantedAgainMayFail) {
  joiner_->Start(Text(Target()));
  EXPECT_EQ(Next().state, JoinedMessage::kUp);
  joiner_->Stop(Text(Target()));
  joiner_->Start(Text(Target()));
  std::ofstream(dir_.path() + "/refused").flush();
  Tell("end");
  const JoinedMessage failed = Next();
  EXPECT_EQ(failed.state, JoinedMessage::kFailed);
  EXPECT_EQ(failed.why, "connection refused");
}

TEST_F(JoinerTest, AChildThatEndsByItselfIsNoted) {
  joiner_->Start(Text(Target()));
  EXPECT_EQ(Next().state, JoinedMessage::kUp);
  Tell("end");
  const JoinedMessage failed = Next();
  EXPECT_EQ(failed.state, JoinedMessage::kFailed);
  EXPECT_THAT(failed.why, HasSubstr("sonde join ended with code 0"));
}

TEST_F(JoinerTest, ANodeScrapesNoMoreThanItMay) {
  for (size_t i = 0; i <= Joiner::kMaxTargets; ++i) {
    joiner_->Start(Text(Target(std::to_string(9100 + i).c_str())));
    const JoinedMessage said = Next();
    const bool last = i == Joiner::kMaxTargets;
    EXPECT_EQ(said.state, last ? JoinedMessage::kFailed : JoinedMessage::kUp) << said.why;
    EXPECT_EQ(said.why.find("16 exporters are scraped already") == 0, last) << said.why;
  }
}

}  // namespace
}  // namespace sonde::node::joiner_test
