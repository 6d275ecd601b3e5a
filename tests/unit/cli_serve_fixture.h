// An archive with two finished steps, as `sonde serve` has it for its source.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/archive/keeper.h"
#include "profiles/archive/open_archive.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/live/live_archive.h"
#include "serve/archive_source.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::cli {

inline constexpr int kTicks = 10;

class ServeTest : public testing::Test {
 protected:
  void SetUp() override {
    Finish("123", kTestStart);
    Finish("124", kTestStart + 3600 * kSecond);
  }
  // Its points are so much after whole seconds. `lost`: the second node; `anew`: the first node's
  // daemon was started a second time.
  void Finish(const std::string& id, Nanos start, Nanos after = 0, bool lost = false,
              bool anew = false) {
    JobDescription job = TestJob(id, start);
    job.nodes.back().lost = lost;
    if (anew) {
      job.nodes.push_back(job.nodes.front());
      job.nodes.front().left = job.nodes.back().joined = start + 10 * kSecond;
    }
    auto live = LiveArchive::Create(root(), job);
    ASSERT_TRUE(live.ok()) << live.status().message();
    const int first = static_cast<int>((start - kTestStart) / kSecond);
    const auto schema = Schema::Make(TaskSeries());
    std::vector<Nanos> times = TestTimes(first, kTicks);
    for (Nanos& time : times) time += after;
    for (uint32_t node : {0u, 1u}) {
      std::vector<double> columns(kTicks, TestCpu(first, node));
      columns.resize(size_t{2} * kTicks, TestMemory(node));
      ASSERT_TRUE(
          (*live)->PutBlock({node, "task", 1}, *schema, MakeBlock(*schema, times, columns)).ok());
    }
    ASSERT_TRUE(PutReducedBlock(**live, 1, first, kTicks).ok());
    Profile profile;
    profile.job = job;
    profile.job.state = EndState::kCompleted;
    profile.job.end = start + kTicks * kSecond;
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    ASSERT_TRUE((*live)->Finish().ok());
  }
  // `patience`: how long a head has for an answer.
  std::unique_ptr<serve::ArchiveSource> OpenSource(Nanos patience = serve::RunningHeads::kTimeout) {
    auto archive = OpenArchive(root());
    EXPECT_TRUE(archive.ok()) << archive.status().message();
    const std::shared_ptr<const Archive> reader = archive->reader;
    return std::make_unique<serve::ArchiveSource>(
        reader, std::make_unique<ArchiveKeeper>(*std::move(archive)), patience);
  }
  static Result<web::Answer> Ask(const serve::ArchiveSource& source, const QuerySpec& spec) {
    std::promise<Result<web::Answer>> promise;
    source.Query(spec, [&](Result<web::Answer> answer) { promise.set_value(std::move(answer)); });
    return promise.get_future().get();
  }
  static QuerySpec Memory(std::string_view job) {
    QuerySpec spec;
    spec.metric = "task_resident_memory_bytes";
    spec.start = kTestStart;
    spec.end = kTestStart + kTicks * kSecond;
    spec.filters.push_back({TagFilter::Type::kLiteralOr, "job", std::string(job), false});
    return spec;
  }
  std::string root() const { return dir_.path() + "/archive"; }

  TempDir dir_;
};

}  // namespace sonde::cli
