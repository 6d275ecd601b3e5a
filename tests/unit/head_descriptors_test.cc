#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <utility>

#include "daemon/head/descriptors.h"
#include "daemon/head/head.h"
#include "daemon/link/via_links.h"
#include "daemon/loop.h"
#include "temp_dir.h"
#include "tests/unit/head_ends.h"

namespace sonde::head::head_descriptors_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Descriptors, EveryNodeTakesOneAndThoseInTheTreeAnother) {
  EXPECT_EQ(DescriptorsFor(1024, 1024, 16) - DescriptorsFor(1000, 1024, 16), 24U);
  EXPECT_EQ(DescriptorsFor(16, 1024, 16) - DescriptorsFor(15, 1024, 16), 2U);
}

TEST(Descriptors, BehindGatewaysNodesTakeNone) {
  EXPECT_LT(DescriptorsFor(100'000, 1024, 16), DescriptorsFor(2600, 4096, 16));
  EXPECT_GE(DescriptorsFor(1025, 1024, 16), DescriptorsFor(1024, 1024, 16));
}

TEST(Descriptors, ALimitThatIsTooLowIsTold) {
  const uint64_t needed = DescriptorsFor(1024, 1024, 16);
  EXPECT_EQ(TooFewDescriptors("the host of srun", 1024, 1024, 16, needed), "");
  EXPECT_THAT(
      TooFewDescriptors("the host of srun", 1024, 1024, 16, needed - 1),
      AllOf(HasSubstr("1024 nodes"), HasSubstr(std::to_string(needed)),
            HasSubstr(std::to_string(needed - 1) + " open files"), HasSubstr("ulimit -Hn")));
}

// A connection through a gateway.
class ViaEnd final : public HeadEnd {
 public:
  bool direct() const override { return false; }
};

// A head that has descriptors for all its nodes if most of them come through gateways.
class HeadsDescriptors : public testing::Test {
 protected:
  static constexpr uint32_t kNodes = 400;
  static constexpr uint32_t kDirect = 4;

  HeadsDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit limit = before_;
    limit.rlim_cur = DescriptorsFor(kNodes, kDirect, Config().fanout);
    EXPECT_LT(limit.rlim_cur, DescriptorsFor(kNodes, kNodes, Config().fanout));
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    launch_.role = Role::kHead;
    launch_.archive = directory_.path();
    launch_.job.id = {"7", "0"};
    launch_.job.start = Clock::System().Now();
    launch_.job.expected_nodes = kNodes;
    launch_.job.period = kSecond;
  }
  ~HeadsDescriptors() override { ::setrlimit(RLIMIT_NOFILE, &before_); }

  void Start() {
    Config config;
    config.http = "off";
    config.report = "full";
    config.direct_nodes = kDirect;
    head_ = std::make_unique<Head>(loop_, clock_, launch_, config, [this](const std::string& text) {
      report_ = text;
      loop_.Stop();
    });
    EXPECT_TRUE(head_->Start({}).ok());
  }
  template <typename End>
  void Come(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i, ++came_) {
      const tree::Registration who = {.job = "7",
                                      .step = "0",
                                      .node_id = came_,
                                      .nodes = kNodes,
                                      .host = "n" + std::to_string(came_)};
      auto end = std::make_unique<End>();
      End* raw = end.get();
      ASSERT_TRUE(head_->AddNode(who, std::move(end)).ok());
      if (came_ == 0) first_ = raw;
    }
  }
  // What the report says of descriptors; "" if nothing.
  std::string Told() {
    first_->Hear(tree::Type::kBye, Encode(tree::Bye{}));
    head_->Finish(false);
    loop_.Run();
    const size_t at = report_.find("lets a process have");
    return at == std::string::npos ? "" : report_.substr(report_.rfind('\n', at) + 1);
  }

  TempDir directory_;
  Loop loop_;
  StepClock clock_;
  LaunchMessage launch_;
  rlimit before_{};
  std::string report_;
  std::unique_ptr<Head> head_;
  HeadEnd* first_ = nullptr;
  uint32_t came_ = 0;
};

TEST_F(HeadsDescriptors, AreEnoughForGateways) {
  Start();
  Come<HeadEnd>(20);
  Come<ViaEnd>(kNodes - 20);
  EXPECT_EQ(Told(), "");
}

// The gateways' ports are taken, for example.
TEST_F(HeadsDescriptors, AreToldWhenNodesComeByThemselvesAllTheSame) {
  Start();
  Come<HeadEnd>(kDirect + 4 * 20 + 2);
  EXPECT_THAT(Told(), AllOf(HasSubstr("the host of srun"), HasSubstr("400 nodes")));
}

TEST_F(HeadsDescriptors, OfAHetJobAreToldWithTheFirstNode) {
  launch_.job.het_job = "7";
  Start();
  Come<HeadEnd>(1);
  EXPECT_THAT(Told(), AllOf(HasSubstr("the host of srun"), HasSubstr("400 nodes")));
}

}  // namespace
}  // namespace sonde::head::head_descriptors_test
