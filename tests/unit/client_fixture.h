// A daemon's reader of applications for the tests of libsonde.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "daemon/collect/app/app.h"
#include "sonde.h"
#include "tests/unit/client_driver.h"

namespace sonde::collect {

inline const std::string kOk = std::to_string(SONDE_OK);

// The step's time after somebody has set the machine's clock forward by so much.
class BehindTheWall final : public Clock {
 public:
  explicit BehindTheWall(Nanos set) : set_(set) {}
  Nanos Now() const override { return OfWall(Clock::System().Now()); }
  Nanos Monotonic() const override { return Clock::System().Monotonic(); }
  Nanos OfWall(Nanos wall) const override { return wall - set_; }

 private:
  const Nanos set_;
};

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    options_.socket = "sonde-test-" + std::to_string(getpid());
    options_.uid = geteuid();
  }

  void Start() {
    auto source = AppSource::Open(options_);
    ASSERT_TRUE(source.ok()) << source.status().message();
    source_ = std::move(source).value();
  }
  ClientProcess::Environment Environment(int rank = 3) {
    return {{"SONDE_SOCKET", options_.socket}, {"SLURM_PROCID", std::to_string(rank)}};
  }
  // The value of a series after a tick; -1 if there is none, NaN if it is missing.
  double Read(const std::string& name) {
    now_ += kSecond;
    source_->Sample(now_);
    EXPECT_EQ(source_->series().size(), source_->values().size());
    for (size_t i = 0; i < source_->series().size(); ++i) {
      const Series& series = source_->series()[i];
      if (SeriesName(series.metric.name, series.tags) == name) return source_->values()[i];
    }
    return -1;
  }

  AppSource::Options options_;
  std::unique_ptr<AppSource> source_;
  Nanos now_ = 1'000 * kSecond;
};

}  // namespace sonde::collect
