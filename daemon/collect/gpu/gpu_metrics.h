// The metrics of GPUs, and which value of a reading each is.
//
// Thread safety: constants.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/metric.h"
#include "daemon/collect/gpu/reading.h"

namespace sonde::collect::gpu {

struct Column {
  MetricDecl decl;
  Value value;
  std::string_view tag;  // beside `gpu`; "": none
  std::string_view tag_value;
  // No device can have more, and no counter can rise by more in a second: a larger value is an
  // error, such as the -1 of a register that is gone.
  double most;
};

// By metric.
std::span<const Column> Columns();

// Those of each link between GPUs, tags gpu and link, and of each task, tags gpu and task.
extern const MetricDecl kLinkReceivedDecl;
extern const MetricDecl kLinkTransmittedDecl;
extern const MetricDecl kProcessMemoryDecl;
inline constexpr double kMostLinkBytes = 1e13;  // a second

}  // namespace sonde::collect::gpu

namespace sonde::collect {

std::vector<MetricDecl> GpuMetrics();

}  // namespace sonde::collect
