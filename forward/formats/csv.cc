// Tables as CSV: the time in nanoseconds, then one column per series, named METRIC/KEY=VALUE/... An
// empty field is a missing value. `scripts/bench codec` reads this.
#include <algorithm>
#include <string>
#include <utility>

#include "forward/formats/columns.h"
#include "forward/formats/table.h"

namespace sonde::forward {
namespace {

// Then a name needs no quotes.
std::string NameOf(const Column& column) {
  std::string name = column.series.metric.name + column.suffix;
  for (const auto& [key, value] : column.series.tags.pairs()) name += "/" + key + "=" + value;
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return c == ',' || c == '"' || static_cast<unsigned char>(c) < 0x20; }, '_');
  return name;
}

class Csv : public TableSink {
 public:
  explicit Csv(TextSink sink) : sink_(std::move(sink)) {}

  Status Begin(const Profile&, const std::vector<Column>& columns) override {
    out_ = "time";
    for (const Column& column : columns) out_ += "," + NameOf(column);
    out_ += '\n';
    return {};
  }
  Status Add(const TableWindow& window) override {
    for (size_t row = 0; row < window.times.size(); ++row) {
      out_ += std::to_string(window.times[row]);
      for (size_t c = 0; c < window.columns; ++c) {
        out_ += ',';
        const double value = window.At(row, c);
        if (!IsMissing(value)) AppendNumber(value, out_);
      }
      out_ += '\n';
      if (out_.size() > kPiece) SONDE_RETURN_IF_ERROR(Flush());
    }
    return {};
  }
  Status End() override { return Flush(); }

 private:
  Status Flush() {
    const Status status = sink_(out_);
    out_.clear();
    return status;
  }
  const TextSink sink_;
  std::string out_;
};

}  // namespace

std::unique_ptr<TableSink> MakeCsv(TextSink sink) { return std::make_unique<Csv>(std::move(sink)); }

}  // namespace sonde::forward
