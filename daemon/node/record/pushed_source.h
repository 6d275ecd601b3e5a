// Metrics that came over HTTP: the head sends each value to one node, which records it with the
// application's.
//
// A series stays until the end of the step with its last value. What does not make sense is dropped
// with one log line; there are at most web::kMaxPushedMetrics.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "daemon/collect/read/source.h"

namespace sonde::node {

class PushedSource final : public collect::Source {
 public:
  std::string_view name() const override { return "pushed"; }
  collect::Group group() const override { return collect::Group::kApp; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos /*now*/) override {}

  // The bytes of a web::PushedValue.
  void Take(std::string_view bytes);

 private:
  std::unordered_map<std::string, size_t> columns_;  // by SeriesName
  bool said_refused_ = false;
};

}  // namespace sonde::node
