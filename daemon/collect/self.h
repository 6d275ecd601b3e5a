// What Sonde itself costs on this node.
//
// Thread safety: none; the daemon's one thread.
#pragma once

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
  // A tick came too late to be taken at its time.
  void CountLateTick() { ++late_ticks_; }

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
  Nanos sampling_ = 0;
};

std::vector<MetricDecl> SelfMetrics();

}  // namespace sonde::collect
