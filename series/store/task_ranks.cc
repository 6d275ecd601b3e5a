#include "series/store/task_ranks.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace sonde {
namespace {

template <typename T>
std::optional<T> Parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A file may hold any text, but no sum overflows; a tag that is no number stays.
void Shift(int64_t by, Tags& tags) {
  const std::string* task = tags.Find(kTaskTag);
  if (task == nullptr || by == 0) return;
  const std::optional<int64_t> rank = Parse<int64_t>(*task);
  if (!rank || *rank < -int64_t{kNoRank} || *rank > int64_t{kNoRank}) return;
  tags.Set(kTaskTag, std::to_string(*rank + by));
}

}  // namespace

bool HasTasks(const Schema& schema) {
  return std::any_of(schema.series().begin(), schema.series().end(),
                     [](const Series& series) { return series.tags.Find(kTaskTag) != nullptr; });
}

uint32_t FirstRank(const Schema& schema) {
  uint32_t first = kNoRank;
  for (const Series& series : schema.series()) {
    const std::string* task = series.tags.Find(kTaskTag);
    if (task == nullptr) continue;
    first = std::min(first, Parse<uint32_t>(*task).value_or(kNoRank));
  }
  return first;
}

Schema::Ptr RanksFrom(uint32_t first, Schema::Ptr schema) {
  if (first == 0 || schema == nullptr || !HasTasks(*schema)) return schema;
  std::vector<Series> series = schema->series();
  for (Series& one : series) Shift(-int64_t{first}, one.tags);
  return Schema::Make(std::move(series));
}

void AddFirstRank(uint32_t first, Tags& tags) { Shift(first, tags); }

std::string GroupFrom(uint32_t first, std::string_view group) {
  std::string name(group);
  if (first != 0) name.append("+").append(std::to_string(first));
  return name;
}

uint32_t FirstRankOf(std::string_view group) {
  const size_t plus = group.rfind('+');
  if (plus == std::string_view::npos) return 0;
  return Parse<uint32_t>(group.substr(plus + 1)).value_or(0);
}

}  // namespace sonde
