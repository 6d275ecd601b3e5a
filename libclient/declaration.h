// What an application registers, in its own words, and the rules for it.
//
// Every check returns SONDE_OK, or SONDE_INVALID with words that name what is wrong and the rule
// (libclient/error.h).
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libclient/layout.h"
#include "libclient/sonde.h"

namespace sonde::client {

// MetricType and Reduction of core/metric.h as they stand in a record.
inline constexpr uint8_t kTypeGauge = 0;
inline constexpr uint8_t kTypeCounter = 1;
inline constexpr uint8_t kTypeHistogram = 2;
inline constexpr uint8_t kReduceSum = 0;
inline constexpr uint8_t kReduceMean = 1;

struct Declaration {
  uint8_t type;
  const char* name;
  const char* unit;
  const char* help;
  int level;
  const sonde_tag_t* tags;
  size_t tag_count;
};

const char* TypeName(uint8_t type);

// "" for NULL.
inline std::string_view Text(const char* text) { return text == nullptr ? "" : text; }

// Tags sorted by key, keys unique.
struct SortedTags {
  std::string_view keys[kMaxAppTags];
  std::string_view values[kMaxAppTags];
  size_t count = 0;

  int Insert(std::string_view metric, std::string_view key, std::string_view value);
};

// `what` is the kind of thing with this name, such as "metric" or "figure"; `limit` in bytes.
int CheckName(const char* what, std::string_view name, size_t limit);
int CheckUnit(std::string_view metric, std::string_view unit);
// Plain text of 1 to `limit` bytes.
int CheckText(const char* what, std::string_view text, size_t limit);

int CheckDeclaration(const Declaration& declaration);
int SortTags(const Declaration& declaration, SortedTags* sorted);

}  // namespace sonde::client
