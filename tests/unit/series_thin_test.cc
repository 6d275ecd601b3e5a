#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "series/block/thin.h"

namespace sonde::series_thin_test {
namespace {

using testing::ElementsAre;
using testing::Pointwise;

const double kNone = std::nan("");

Schema::Ptr Base() {
  Series counter;
  counter.metric.name = "cpu_seconds_total";
  counter.metric.type = MetricType::kCounter;
  Series gauge;
  gauge.metric.name = "memory_bytes";
  gauge.tags = {{"device", "a"}};
  return Schema::Make({counter, gauge});
}

// Rows of both columns, one a second from `first` on.
std::string Rows(const Schema& schema, Nanos first, std::vector<double> counter,
                 const std::vector<double>& gauge) {
  std::vector<Nanos> times;
  for (size_t i = 0; i < counter.size(); ++i) {
    times.push_back((first + static_cast<Nanos>(i)) * kSecond);
  }
  const size_t rows = counter.size();
  counter.insert(counter.end(), gauge.begin(), gauge.end());
  std::string bytes;
  BlockEncoder encoder;
  EXPECT_TRUE(encoder.Encode(schema.id(), times, counter.data(), 2, rows, bytes).ok());
  return bytes;
}

class ThinTest : public testing::Test {
 protected:
  ThinnedBlock Thinned(std::vector<ThinSource> sources, uint32_t samples) {
    auto out = Thin(*base_, ThinnedShape(*thinned_), sources, samples, encoder_);
    EXPECT_TRUE(out.ok()) << out.status().message();
    return out.ok() ? *std::move(out) : ThinnedBlock();
  }
  static std::vector<double> Column(const ThinnedBlock& block, size_t column) {
    const auto decoded = DecodeBlock(*block.bytes);
    EXPECT_TRUE(decoded.ok());
    const auto values = decoded->Column(column);
    return {values.begin(), values.end()};
  }

  const Schema::Ptr base_ = Base();
  const Schema::Ptr thinned_ = ThinnedSchema(*base_);
  BlockEncoder encoder_;
};

TEST_F(ThinTest, AThinnedSchemaHasTheExtremesOfGaugesBeside) {
  ASSERT_EQ(thinned_->size(), 4u);
  EXPECT_EQ((*thinned_)[0], (*base_)[0]);
  EXPECT_EQ((*thinned_)[1], (*base_)[1]);
  EXPECT_EQ(*(*thinned_)[2].tags.Find(kThinnedTag), "min");
  EXPECT_EQ(*(*thinned_)[3].tags.Find(kThinnedTag), "max");
  EXPECT_EQ(*(*thinned_)[3].tags.Find("device"), "a");
  EXPECT_TRUE(IsExtreme((*thinned_)[3]));
  EXPECT_FALSE(IsExtreme((*thinned_)[1]));
}

TEST_F(ThinTest, KeepsTotalsMeansAndExtremesAndTheWholeTime) {
  const std::string rows = Rows(*base_, 1, {1, 2, 3, 4, 5, 6}, {10, 2, 6, 6, 7, 9});
  const ThinnedBlock thin = Thinned({{rows, {}}}, 4);
  EXPECT_EQ(thin.info.first, 4 * kSecond);
  EXPECT_EQ(thin.info.last, 6 * kSecond);
  EXPECT_EQ(thin.info.schema_id, thinned_->id());
  EXPECT_THAT(thin.weights, ElementsAre(4, 2));
  EXPECT_THAT(Column(thin, 0), ElementsAre(4, 6));
  EXPECT_THAT(Column(thin, 1), ElementsAre(6, 8));
  EXPECT_THAT(Column(thin, 2), ElementsAre(2, 7));
  EXPECT_THAT(Column(thin, 3), ElementsAre(10, 9));
}

TEST_F(ThinTest, MissingValuesDoNotCount) {
  const std::string rows = Rows(*base_, 1, {1, 2, 3, kNone, kNone, kNone, kNone, kNone},
                                {kNone, 2, kNone, 4, kNone, kNone, kNone, kNone});
  const ThinnedBlock thin = Thinned({{rows, {}}}, 4);
  EXPECT_THAT(Column(thin, 0), Pointwise(testing::NanSensitiveDoubleEq(), {3.0, kNone}));
  EXPECT_THAT(Column(thin, 1), Pointwise(testing::NanSensitiveDoubleEq(), {3.0, kNone}));
  EXPECT_THAT(Column(thin, 2), Pointwise(testing::NanSensitiveDoubleEq(), {2.0, kNone}));
}

// Blocks of several resolutions, thinned by and by, against all samples thinned at once.
TEST_F(ThinTest, AgainAndTogetherGivesTheSameAsAtOnce) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> value(0, 100);
  std::vector<double> counter;
  std::vector<double> gauge;
  for (int i = 0; i < 96; ++i) {
    counter.push_back(i);
    gauge.push_back(value(random));
  }
  const auto part = [&](size_t from, size_t to) {
    return Rows(*base_, static_cast<Nanos>(from), {counter.begin() + from, counter.begin() + to},
                {gauge.begin() + from, gauge.begin() + to});
  };
  const ThinnedBlock once = Thinned({{Rows(*base_, 0, counter, gauge), {}}}, 16);

  const std::string first = part(0, 32);
  const std::string second = part(32, 64);
  const std::string third = part(64, 96);
  const ThinnedBlock by4 = Thinned({{first, {}}}, 4);
  const ThinnedBlock by8 = Thinned({{*by4.bytes, by4.weights}, {second, {}}}, 8);
  const ThinnedBlock by16 = Thinned({{*by8.bytes, by8.weights}, {third, {}}}, 16);
  EXPECT_EQ(by16.weights, once.weights);
  EXPECT_EQ(by16.info.first, once.info.first);
  EXPECT_EQ(by16.info.last, once.info.last);
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_THAT(Column(by16, c), Pointwise(testing::DoubleNear(1e-9), Column(once, c))) << c;
  }
}

TEST_F(ThinTest, RefusesWhatDoesNotFit) {
  const std::string rows = Rows(*base_, 1, {1, 2}, {1, 2});
  const std::vector<uint32_t> weights = {4, 4};
  EXPECT_EQ(Thin(*base_, ThinnedShape(*thinned_), {}, 4, encoder_).status().code(), Code::kInvalid);
  const std::vector<ThinSource> wrong = {{rows, weights}};
  EXPECT_EQ(Thin(*base_, ThinnedShape(*thinned_), wrong, 4, encoder_).status().code(),
            Code::kInvalid);
  const std::vector<ThinSource> damaged = {{std::string_view(rows).substr(1), {}}};
  EXPECT_EQ(Thin(*base_, ThinnedShape(*thinned_), damaged, 4, encoder_).status().code(),
            Code::kCorrupt);
}

}  // namespace
}  // namespace sonde::series_thin_test
