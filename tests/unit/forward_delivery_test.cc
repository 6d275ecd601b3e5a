// What is done about each answer of a receiver: repeated, cut up, counted or given up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "forward/delivery.h"
#include "forward/formats/line.h"

namespace sonde::forward {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Answers as the test says; a request's lines are counted, one for each sample.
class ScriptedHttp final : public Http {
 public:
  using Script = std::function<Result<HttpAnswer>(size_t samples, std::string_view body)>;
  ScriptedHttp(Script script, std::vector<size_t>& seen)
      : script_(std::move(script)), seen_(seen) {}
  Result<HttpAnswer> Post(const std::string& /*url*/, const std::vector<std::string>& /*headers*/,
                          std::string_view body, const std::function<bool()>& /*go_on*/) override {
    const auto samples = static_cast<size_t>(std::count(body.begin(), body.end(), '\n'));
    seen_.push_back(samples);
    return script_(samples, body);
  }
  Result<HttpAnswer> Get(const std::string& /*url*/) override {
    return HttpAnswer{200, 0, "", false};
  }

 private:
  const Script script_;
  std::vector<size_t>& seen_;
};

class Waits final : public Patience {
 public:
  explicit Waits(size_t most) : most_(most) {}
  bool Wait(Nanos time) override {
    times.push_back(time);
    return times.size() < most_;
  }
  bool GoOn() override { return true; }
  void Succeeded() override { ++succeeded; }

  std::vector<Nanos> times;
  int succeeded = 0;

 private:
  const size_t most_;
};

HttpAnswer Answered(int status, Nanos retry_after = 0, const std::string& body = "") {
  return {status, retry_after, body, false};
}

struct Failures final : Delivery::Witness {
  void OnFailure(std::string_view why) override { all.emplace_back(why); }
  Status OnSplit() override { return {}; }

  std::vector<std::string> all;
};

// InfluxDB's protocol has a line for each sample.
class DeliveryTest : public testing::Test {
 protected:
  DeliveryTest() : destination_(*ParseDestination("http://h:8086/write?db=x")) {
    line_.name = line_.metric.name = "load";
    Encoder::Make(destination_)->Prepare(line_);
    for (int i = 0; i < 8; ++i) samples_.push_back({(i + 1) * kSecond, double(i)});
    runs_ = {{&line_, samples_}};
  }
  Result<Delivery::Outcome> Send(ScriptedHttp::Script script, bool perhaps_there = false,
                                 size_t waits = 100) {
    patience_ = std::make_unique<Waits>(waits);
    delivery_ = std::make_unique<Delivery>(
        destination_, std::make_unique<ScriptedHttp>(std::move(script), seen_), *patience_);
    return delivery_->Send(runs_, perhaps_there, witness_);
  }

  const Destination destination_;
  Line line_;
  std::vector<Sample> samples_;
  Runs runs_;
  std::vector<size_t> seen_;  // samples of each request
  Failures witness_;
  std::unique_ptr<Waits> patience_;
  std::unique_ptr<Delivery> delivery_;
};

TEST_F(DeliveryTest, WhatIsTakenIsSentOnce) {
  const auto outcome = Send([](size_t, std::string_view) { return Answered(204); });
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->taken, 8u);
  EXPECT_THAT(seen_, ElementsAre(8));
  EXPECT_EQ(patience_->succeeded, 1);
}

TEST_F(DeliveryTest, NotNowIsRepeatedEverMoreSeldom) {
  int asked = 0;
  const auto outcome =
      Send([&](size_t, std::string_view) { return Answered(++asked < 4 ? 503 : 204); });
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->taken, 8u);
  ASSERT_EQ(patience_->times.size(), 3u);
  EXPECT_EQ(witness_.all.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Nanos middle = Delivery::kFirstWait << i;
    EXPECT_GE(patience_->times[i], middle * 8 / 10);
    EXPECT_LE(patience_->times[i], middle * 12 / 10);
  }
}

TEST_F(DeliveryTest, AReceiverSaysHowLongToWait) {
  int asked = 0;
  ASSERT_TRUE(Send([&](size_t, std::string_view) {
                return ++asked == 1 ? Answered(429, 17 * kSecond) : Answered(204);
              }).ok());
  EXPECT_THAT(patience_->times, ElementsAre(17 * kSecond));
}

TEST_F(DeliveryTest, WhatIsWrongIsFoundByHalvesAndTheRestIsTaken) {
  // The sample of second 3 is what it does not like.
  const auto outcome = Send([](size_t, std::string_view body) {
    return body.find(" 3000000000\n") != std::string_view::npos ? Answered(400, 0, "bad point")
                                                                : Answered(204);
  });
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->taken, 7u);
  EXPECT_EQ(outcome->refused, 1u);
  EXPECT_THAT(seen_, ElementsAre(8, 4, 2, 2, 1, 1, 4));
  EXPECT_THAT(delivery_->refusal(), HasSubstr("bad point"));
}

TEST_F(DeliveryTest, ATokenThatIsNotAcceptedEndsIt) {
  const auto outcome = Send([](size_t, std::string_view) { return Answered(401); });
  EXPECT_EQ(outcome.status().code(), Code::kPermission);
  EXPECT_THAT(seen_, ElementsAre(8));
}

TEST_F(DeliveryTest, WhoCouldNotBeReachedHasNothingAndWhoDidNotAnswerPerhaps) {
  auto outcome = Send(
      [](size_t, std::string_view) { return Status(Code::kUnavailable, "connection refused"); },
      false, 2);
  EXPECT_EQ(outcome.status().code(), Code::kUnavailable);
  EXPECT_FALSE(delivery_->perhaps_there());
  outcome =
      Send([](size_t, std::string_view) { return Status(Code::kTimeout, "no answer"); }, false, 2);
  EXPECT_EQ(outcome.status().code(), Code::kUnavailable);
  EXPECT_TRUE(delivery_->perhaps_there()) << "the batch comes again as it was";
  outcome = Send([](size_t, std::string_view) { return Answered(504); }, false, 2);
  EXPECT_TRUE(delivery_->perhaps_there()) << "a gateway may have lost the answer";
}

TEST_F(DeliveryTest, AReceiverThatTakesNothingIsGivenUp) {
  samples_.clear();
  for (int i = 0; i < 200; ++i) samples_.push_back({(i + 1) * kSecond, 1});
  runs_ = {{&line_, samples_}};
  const auto outcome = Send([](size_t, std::string_view) { return Answered(400, 0, "no"); });
  EXPECT_EQ(outcome.status().code(), Code::kLimit);
  EXPECT_THAT(std::string(outcome.status().message()), HasSubstr("refuses every sample"));
  EXPECT_LT(seen_.size(), 300u);
}

TEST_F(DeliveryTest, WhatRepeatingDoesNotHelpIsNotRepeated) {
  const auto outcome = Send([](size_t, std::string_view) {
    return Status(Code::kInvalid, "the certificate is not trusted");
  });
  EXPECT_EQ(outcome.status().code(), Code::kInvalid);
  EXPECT_TRUE(patience_->times.empty());
}

}  // namespace
}  // namespace sonde::forward
