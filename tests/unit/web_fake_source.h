// A data source for tests: two steps of a small cluster with plausible curves, made by formula.
//
// 4711.0 ran for ten minutes on n1 to n4 with two tasks on each, completed, and n3 delivered
// nothing between second 200 and 240; its phases, remarks, figures of merit and a histogram are
// there. 4712.0 has been running for five minutes on n1 and n2. The
// source answers queries on a thread of its own, or, in SetMode, never, or with an error.
//
// Thread safety: that of DataSource; SetMode from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "web/source/data_source.h"
#include "web/source/tick_signal.h"

namespace sonde::web {

// It is always the same time.
class FixedClock : public Clock {
 public:
  explicit FixedClock(Nanos now) : now_(now) {}
  Nanos Now() const override { return now_; }
  Nanos Monotonic() const override { return now_; }

 private:
  const Nanos now_;
};

class FakeSource : public DataSource {
 public:
  enum class Mode { kAnswer, kNever, kFail };

  // `now` is where the running step has got to. `crowded`: the finished one had 30 phases and made
  // 200 remarks, and something of the archive cannot be read.
  explicit FakeSource(Nanos now, bool crowded = false);
  ~FakeSource() override;

  void SetMode(Mode mode) { mode_ = mode; }
  // Calls back what kNever held back.
  void Release();
  size_t held() const;

  void Jobs(size_t limit, JobsCallback callback) const override;
  void GetProfile(const JobStep& id, ProfileCallback callback) const override;
  // Of 4711 besides its step the batch script.
  void StepsOf(const std::string& job, Nanos now, StepsCallback callback) const override;
  std::vector<std::string> PassedOver() const override { return damage_; }
  // Of 4711.0; 4712.0 runs. What is named "locked" cannot be written, and "forbidden" may not be.
  void ChangeTags(const JobStep& id, const UserTags& set, const std::vector<std::string>& remove,
                  TagsCallback callback) const override;
  // Whatever is asked for: each group is 20 % slower than the one before.
  void Compare(const std::vector<std::string>& groups, const std::string& align,
               CompareCallback callback) const override;
  // Three runs, the last of which stands out.
  void CompareMany(const ManyRunsQuestion& question, CompareCallback callback) const override;
  void Bands(const ManyRunsQuestion& question, const std::vector<std::string>& metrics,
             BandAxis axis, CompareCallback callback) const override;
  void Models(const ModelsQuestion& question, ModelsCallback callback) const override;
  void Conclude(const JobStep& id, const std::string& of, ConcludeCallback callback) const override;
  void ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const override;
  void Query(const QuerySpec& spec, Callback callback) const override;
  // Of the running step, at once.
  void QueryForPart(const QuerySpec& spec, const QueryGrid& grid,
                    PartCallback callback) const override;
  void Notes(Nanos first, Nanos last, NotesCallback callback) const override;
  TickSignal* ticks() const override { return &ticks_; }
  void ReadLive(const JobStep& id, const IsWanted& wanted, Nanos after, size_t limit,
                RowsCallback callback) const override;

  // For live events: how many of the running step's 300 rows have come, all unless it is said; one
  // more; its end.
  void SetLiveRows(size_t rows) { live_rows_ = rows; }
  void Tick();
  void EndLive();

 private:
  struct Step;
  struct Held;
  Result<Answer> Evaluate(const QuerySpec& spec) const;
  Result<Profile> ProfileOf(const JobStep& id) const;
  LiveRows RowsAfter(const IsWanted& wanted, Nanos after, size_t limit) const;

  std::vector<std::string> damage_;
  std::vector<std::unique_ptr<Step>> steps_;  // newest first
  std::unique_ptr<Held> held_;
  mutable std::mutex tags_mutex_;
  mutable UserTags tags_ = {{"campaign", "winter"}};  // of 4711.0
  std::atomic<Mode> mode_ = Mode::kAnswer;
  std::atomic<size_t> live_rows_ = 300;
  std::atomic<bool> live_ended_ = false;
  mutable TickSignal ticks_;
};

}  // namespace sonde::web
