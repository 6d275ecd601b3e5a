// An empty store in memory that takes points over HTTP, for tests and trials: `sonde serve
// --ephemeral` serves it. The asking thread evaluates queries, with the same code as everywhere.
//
// It holds at most kMaxSeries series, kMaxPoints points and kMaxNotes notes; it refuses all beyond
// that.
//
// Thread safety: that of DataSource and PointSink; one mutex.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "web/source/data_source.h"
#include "web/source/point_sink.h"

namespace sonde::web {

class PutStore final : public DataSource {
 public:
  static constexpr size_t kMaxSeries = 65'536;
  // 16 bytes each; whole numbers beyond 2^53 have some 60 more.
  static constexpr size_t kMaxPoints = 16'777'216;

  PutStore();
  ~PutStore() override;

  void Jobs(size_t limit, JobsCallback callback) const override;
  void GetProfile(const JobStep& id, ProfileCallback callback) const override;
  void ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const override;
  void Query(const QuerySpec& spec, Callback callback) const override;
  void Notes(Nanos first, Nanos last, NotesCallback callback) const override;
  void ReadLive(const JobStep& id, const IsWanted& wanted, Nanos after, size_t limit,
                RowsCallback callback) const override;
  PointSink* sink() const override;
  // A point of now; there are no steps.
  Status Push(const JobStep& id, const PushedValue& value) const override;

 private:
  class Held;
  const std::unique_ptr<Held> held_;
};

}  // namespace sonde::web
