// Tables as JSON lines: first the profile's description, then one object for some of the values of
// one series, in the order of time.
//
//   {"job":"4711.0","description":{...}}
//   {"job":"4711.0","metric":"node_load1","tags":{"host":"n1"},"unit":"1","type":"gauge",
//    "times":[1790000001000000000,...],"values":[0.5,...]}
//
// A missing value has no entry. JSON has no infinities and NaN: they are the texts "nan", "inf" or
// "-inf".
#include <cmath>
#include <string>
#include <utility>

#include "forward/formats/table.h"
#include "profiles/json/writer.h"

namespace sonde::forward {
namespace {

class JsonLines : public TableSink {
 public:
  explicit JsonLines(TextSink sink) : sink_(std::move(sink)) {}

  Status Begin(const Profile& profile, const std::vector<Column>& columns) override {
    job_ = profile.job.id.ToString();
    heads_.clear();
    for (const Column& column : columns) heads_.push_back(HeadOf(column));
    std::string line;
    JsonWriter w(line);
    w.BeginObject().Field("job", job_);
    w.Key("description").Raw(DescriptionToJson(profile.job)).EndObject();
    return sink_(line + "\n");
  }
  Status Add(const TableWindow& window) override {
    for (size_t c = 0; c < window.columns; ++c) SONDE_RETURN_IF_ERROR(AddColumn(window, c));
    return {};
  }
  Status End() override { return {}; }

 private:
  // Everything before the numbers, without the closing brace.
  std::string HeadOf(const Column& column) const {
    const Metric& metric = column.series.metric;
    std::string head;
    JsonWriter w(head);
    w.BeginObject().Field("job", job_).Field("metric", metric.name + column.suffix);
    w.Key("tags").BeginObject();
    for (const auto& [key, value] : column.series.tags.pairs()) w.Field(key, value);
    w.EndObject().Field("unit", metric.unit).Field("type", ToString(metric.type));
    return head;
  }
  Status AddColumn(const TableWindow& window, size_t column) {
    std::string times;
    std::string values;
    for (size_t row = 0; row < window.times.size(); ++row) {
      const double value = window.At(row, column);
      if (IsMissing(value)) continue;
      if (!times.empty()) times += ',', values += ',';
      times += std::to_string(window.times[row]);
      const bool finite = std::isfinite(value);
      if (!finite) values += '"';
      AppendNumber(value, values);
      if (!finite) values += '"';
    }
    if (times.empty()) return {};
    return sink_(heads_[column] + ",\"times\":[" + times + "],\"values\":[" + values + "]}\n");
  }

  const TextSink sink_;
  std::string job_;
  std::vector<std::string> heads_;  // of columns
};

}  // namespace

std::unique_ptr<TableSink> MakeJsonLines(TextSink sink) {
  return std::make_unique<JsonLines>(std::move(sink));
}

}  // namespace sonde::forward
