#include "daemon/node/record/pushed_source.h"

#include <utility>

#include "core/log.h"
#include "web/source/pushed_value.h"

namespace sonde::node {

using web::PushedValue;

void PushedSource::Take(std::string_view bytes) {
  Result<PushedValue> value = web::DecodePushed(bytes);
  const bool known = value.ok();
  std::string name = known ? SeriesName(value->series.metric.name, value->series.tags) : "";
  const auto found = columns_.find(name);
  if (!known || (found == columns_.end() && columns_.size() >= web::kMaxPushedMetrics)) {
    if (!std::exchange(said_refused_, true)) {
      log::Warning("a value pushed over HTTP is dropped: {}",
                   known ? "there are too many metrics" : value.status().message());
    }
    return;
  }
  size_t column = 0;
  if (found != columns_.end()) {
    column = found->second;
  } else {
    column = series_.size();
    columns_.emplace(std::move(name), column);
    series_.push_back(std::move(value->series));
    values_.push_back(0);
    ++generation_;
  }
  if (value->kind == PushedValue::Kind::kSet) values_[column] = value->value;
  if (value->kind == PushedValue::Kind::kAdd) values_[column] += value->value;
}

}  // namespace sonde::node
