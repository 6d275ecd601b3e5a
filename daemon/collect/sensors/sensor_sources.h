// The sources of sensors, one file each: power.cc, temperatures.cc, throttling.cc, frequencies.cc.
//
// `level` is the step's telemetry level: at 4 a source gives its details as well. `buffer` is
// shared by all and outlives them.
//
// Thread safety: functions without state.
#pragma once

#include <memory>
#include <vector>

#include "core/time.h"
#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

// `clock` measures how long a sensor takes to be read, and outlives the source.
std::unique_ptr<Source> MakePowerSource(const Roots& roots, int level, ReadBuffer& buffer,
                                        const Clock& clock = Clock::System());
std::vector<MetricDecl> PowerMetrics();

std::unique_ptr<Source> MakeTemperatureSource(const Roots& roots, int level, ReadBuffer& buffer,
                                              const Clock& clock = Clock::System());
std::vector<MetricDecl> TemperatureMetrics();

std::unique_ptr<Source> MakeThrottlingSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> ThrottlingMetrics();

// For level 4.
std::unique_ptr<Source> MakeFrequencySource(const Roots& roots, ReadBuffer& buffer);
std::vector<MetricDecl> FrequencyMetrics();

}  // namespace sonde::collect
