// Sends one profile to one destination: the rows in the archive that were not sent yet, in the
// order of time, as far as the receiver takes them. Called again and again for a running step.
//
// The archive is the queue: in memory there are one block and one batch.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "forward/delivery.h"
#include "forward/record.h"
#include "profiles/archive/archive.h"
#include "profiles/archive/step_numbers.h"

namespace sonde::forward {

class Exporter {
 public:
  // Rows of a running step's reduced series wait for this long, since late parts are merged into
  // them.
  static constexpr Nanos kSettle = 10 * kSecond;

  struct Progress {
    uint64_t taken = 0;  // samples, by this object
    uint64_t refused = 0;
    // Samples that the protocol cannot express: infinities, and all but the last in a millisecond.
    uint64_t untold = 0;
    Nanos reached = 0;  // the time of the newest row that was sent
  };
  using OnProgress = std::function<void(const Progress&)>;

  // `archive`, `delivery` and `record` (of this profile) must outlive it.
  Exporter(const Archive& archive, std::string key, Delivery& delivery, Record& record,
           OnProgress on_progress = nullptr);
  ~Exporter();

  // Sends all rows there are. After the last row of a step that has ended it sends the stale
  // markers, to receivers that know them, and the record is done.
  Status Pass();
  const Progress& progress() const { return progress_; }

 private:
  // The lines and columns of a node's group, or of the reduced series.
  struct Columns {
    std::vector<std::unique_ptr<Line>> lines;  // nullptr: not wanted
    size_t wanted = 0;
  };
  struct StreamState {
    Nanos seen = INT64_MIN;
    std::unordered_map<uint64_t, Columns> columns;  // by schema
  };
  // Rows of one stream and one schema that wait to be sent.
  struct Chunk {
    const Columns* columns;
    std::vector<Nanos> times;
    std::vector<double> values;  // row after row, of the wanted columns
  };

  Status Read(const ProfileEntry& entry, const Marks* only);
  Status AddRow(const ProfileEntry& entry, const StoredRow& row, const Marks* only);
  Status Flush(bool perhaps_there);
  Columns& ColumnsOf(const ProfileEntry& entry, const StoredRow& row, StreamState& stream);
  Runs MakeRuns(std::vector<Sample>& storage);
  Status SendBatch(const Runs& runs, const Marks& marks, bool perhaps_there);
  // The lines of the whole step, each once.
  std::vector<Line> LinesOfStep() const;
  // Calls `f` with the lines of each host, each once.
  Status ForEachHost(const ProfileEntry& entry,
                     const std::function<Status(std::vector<Line> lines)>& f) const;
  Status SendStale(const ProfileEntry& entry);
  Status Forget(Status failure);

  const Archive& archive_;
  const std::string key_;
  Delivery& delivery_;
  Record& record_;
  const OnProgress on_progress_;
  // Of the wall clock when this began: the step's time does not follow that if it is set.
  const Nanos ahead_;
  Progress progress_;

  std::map<Stream, StreamState> streams_;
  StepNumbers numbers_{{}};
  std::vector<double> row_;

  std::vector<Chunk> chunks_;
  size_t waiting_ = 0;  // values in chunks_
  Marks marks_;         // of chunks_, when the receiver has taken them
};

}  // namespace sonde::forward
