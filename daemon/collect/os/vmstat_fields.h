// How the lines of /proc/vmstat are declared, and the table of those that only level 4 keeps.
//
// Thread safety: constants.
#pragma once

#include <span>
#include <string_view>

#include "daemon/collect/os/key_value_source.h"

namespace sonde::collect::vmstat_fields {

// One line until 4.8 (reclaim counted by node since) or from 4.10 (allocstall), the zones
// otherwise.
inline constexpr std::string_view kZones[] = {"",      "_dma",     "_dma32", "_normal",
                                              "_high", "_movable", "_device"};
inline constexpr std::string_view kPageKinds[] = {"", "_anon", "_file"};  // two kinds since 5.9
inline constexpr std::string_view kSplit[] = {"", "_page"};               // "_page" since 4.5
inline constexpr std::string_view kReclaimers[] = {"_kswapd", "_direct", "_khugepaged",
                                                   "_proactive"};

constexpr KeyField Count(std::string_view key, std::string_view name, uint8_t level,
                         std::string_view help,
                         std::span<const std::string_view> endings = kAlone) {
  return {
      key, {name, "1", MetricType::kCounter, level, Reduction::kSum, help}, KeyUnit::kOne, endings};
}
constexpr KeyField Bytes(std::string_view key, std::string_view name, uint8_t level,
                         std::string_view help, std::span<const std::string_view> endings = kAlone,
                         KeyUnit unit = KeyUnit::kPages) {
  return {key, {name, "bytes", MetricType::kCounter, level, Reduction::kSum, help}, unit, endings};
}
// An amount that rises and falls.
constexpr KeyField Amount(std::string_view key, std::string_view name, std::string_view help) {
  return {key, {name, "bytes", MetricType::kGauge, 4, Reduction::kSum, help}, KeyUnit::kPages};
}

extern const std::span<const KeyField> kDetails;

}  // namespace sonde::collect::vmstat_fields
