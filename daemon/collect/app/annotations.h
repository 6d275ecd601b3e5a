// What the processes of this node told between two takes, merged.
//
// At most kMax different annotations are kept, kMaxRemarks of them remarks, so that a flood of
// remarks leaves room for phases and figures; annotations beyond that are counted as lost.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/annotation.h"
#include "daemon/collect/app/moments.h"

namespace sonde::collect {

class AppAnnotations {
 public:
  static constexpr size_t kMax = 256;
  static constexpr size_t kMaxRemarks = 192;

  void Add(Annotation annotation);
  void Lose(uint64_t count) { lost_ += count; }

  // Fills in annotations, by the time they were first said, and lost; begins anew.
  void Take(Moments& out);

 private:
  std::vector<Annotation> annotations_;
  std::unordered_map<std::string, size_t> places_;  // by what makes two the same
  std::string key_;
  size_t remarks_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace sonde::collect
