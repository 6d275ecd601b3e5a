// What Sonde itself costs on this node.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <string_view>
#include <vector>

#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

// What the daemon knows of itself beside its sampling.
struct DaemonState {
  double sent_bytes = 0;            // over all links
  double queued_bytes = 0;          // that wait for the link upwards to take them
  double stored_bytes = 0;          // compressed blocks of the node's own series, so far
  double unacknowledged_bytes = 0;  // of these, not known to be in the archive yet
  double left_out_series = 0;  // of the node and those below it, that had no room on their way up
  double dropped_rows = 0;     // that no block holds, out of order or for lack of memory
};

class SelfSource final : public Source {
 public:
  // `buffer` is shared with other sources and outlives this one.
  SelfSource(const Roots& roots, int level, ReadBuffer& buffer);

  // One sample was taken and took this long by the wall clock.
  void CountSample(Nanos took);
  // A tick was taken long after its time, or not at all.
  void CountLateTick() { ++late_ticks_; }
  void CountSkippedTicks(uint64_t ticks) { skipped_ticks_ += ticks; }
  void SetDaemon(const DaemonState& state) { daemon_ = state; }
  // What to give CountSource for a source of that name; those of one name are added up. The series
  // of sources are only there if this was called.
  size_t AddSource(std::string_view name);
  // Reading it once took this long.
  void CountSource(size_t source, Nanos took) { reading_[source] += took; }

  std::string_view name() const override { return "self"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override;

 private:
  // After the first samples the daemon's memory hardly changes: it is read at one in so many.
  static constexpr uint64_t kMemoryEvery = 8;

  void ReadMemory(Nanos now);

  FileReader statm_;
  ReadBuffer& buffer_;
  const double page_size_;
  uint64_t samples_ = 0;
  uint64_t late_ticks_ = 0;
  uint64_t skipped_ticks_ = 0;
  Nanos sampling_ = 0;
  DaemonState daemon_;
  size_t own_ = 0;              // columns before those of sources
  std::vector<Nanos> reading_;  // by source
};

std::vector<MetricDecl> SelfMetrics();

}  // namespace sonde::collect
