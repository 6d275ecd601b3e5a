// What Sonde itself costs on this node.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <string_view>
#include <vector>

#include "daemon/collect/file_reader.h"
#include "daemon/collect/source.h"

namespace sonde::collect {

class SelfSource final : public Source {
 public:
  // `buffer` is shared with other sources and outlives this one.
  SelfSource(const Roots& roots, ReadBuffer& buffer);

  // One sample was taken and took this long by the wall clock.
  void CountSample(Nanos took);
  // A tick was taken long after its time, or not at all.
  void CountLateTick() { ++late_ticks_; }
  void CountSkippedTick() { ++skipped_ticks_; }
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
  std::vector<Nanos> reading_;  // by source
};

std::vector<MetricDecl> SelfMetrics();

}  // namespace sonde::collect
