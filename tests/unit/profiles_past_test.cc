// Values of the past in an archive: their blocks are in no order of time, and are all found.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "series/store/past.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_past_test {
namespace {

class PastProfile : public testing::Test {
 protected:
  PastProfile() {
    auto live = LiveArchive::Create(root_, TestJob());
    if (!live.ok()) abort();
    Put(**live, "app", 1, 100, {1, 1, 1});
    Put(**live, "app", 2, 103, {1, 1, 1});
    // As they were told: forwards in each block, and back and forth from one to the next.
    Put(**live, "past", 1, 40, {4, 4});
    Put(**live, "past", 2, 10, {2, 2});
    Put(**live, "past", 3, 101, {9});
    Put(**live, "past", 4, 11, {3, 3});
    live->reset();
    archive_ = *OpenArchive(root_, 0);
  }
  void Put(LiveArchive& live, const std::string& group, uint64_t sequence, Nanos second,
           const std::vector<double>& values) {
    const Schema::Ptr schema = Schema::Make({TestSeries("loss", MetricType::kGauge)});
    std::vector<Nanos> times;
    for (size_t i = 0; i < values.size(); ++i) {
      times.push_back((second + static_cast<Nanos>(i)) * kSecond);
    }
    if (!live.PutBlock({0, group, sequence}, *schema, MakeBlock(*schema, times, values)).ok()) {
      abort();
    }
  }
  std::vector<Point> Read(Nanos first, Nanos last) const {
    const auto wanted = [](const Series& series) { return series.metric.name == "loss"; };
    const auto read = archive_.reader->Read(archive_.reader->List()->at(0).key, SeriesScope::kNodes,
                                            wanted, first * kSecond, last * kSecond);
    std::vector<Point> points;
    EXPECT_TRUE(read.ok() && read->size() <= 1);
    if (!read.ok() || read->empty()) return points;
    for (const Point& p : read->at(0).points) points.push_back({p.time / kSecond, p.value});
    return points;
  }

  const TempDir dir_;
  const std::string root_ = dir_.path() + "/archive";
  OpenedArchive archive_;
};

TEST_F(PastProfile, AreAllFoundWhateverTheirOrder) {
  EXPECT_EQ(Read(0, 200), (std::vector<Point>{{10, 2},
                                              {11, 3},
                                              {12, 3},
                                              {40, 4},
                                              {41, 4},
                                              {100, 1},
                                              {101, 9},
                                              {102, 1},
                                              {103, 1},
                                              {104, 1},
                                              {105, 1}}));
  EXPECT_EQ(Read(11, 40), (std::vector<Point>{{11, 3}, {12, 3}, {40, 4}}));
  EXPECT_EQ(Read(10, 10), (std::vector<Point>{{10, 2}}));
  EXPECT_EQ(Read(101, 101), (std::vector<Point>{{101, 9}}));
  EXPECT_TRUE(Read(13, 39).empty());
}

TEST_F(PastProfile, EveryRowIsRead) {
  RowsWanted wanted;
  std::vector<std::pair<Nanos, double>> rows;
  wanted.stream = [](uint32_t, const std::string& group, const BlockInfo&) {
    return IsPastGroup(group);
  };
  const Status read = archive_.reader->ReadRows(
      archive_.reader->List()->at(0).key, SeriesScope::kNodes, wanted, [&](const StoredRow& row) {
        rows.emplace_back(row.time() / kSecond, row.block.Column(0)[row.row]);
        return Status();
      });
  EXPECT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(rows, (std::vector<std::pair<Nanos, double>>{
                      {10, 2}, {11, 2}, {11, 3}, {12, 3}, {40, 4}, {41, 4}, {101, 9}}));
}

}  // namespace
}  // namespace sonde::profiles_past_test
