// InfluxDB's line protocol: the metric is the measurement, labels are tags, the number is the field
// `value`, times are nanoseconds. A point that comes again replaces itself.
#include <charconv>
#include <cmath>

#include "core/text/printable.h"
#include "forward/formats/encoder.h"

namespace sonde::forward {
namespace {

// Escapes commas, blanks and, except in measurements, '='. An end of a line would begin a point of
// its own: only what is printable is written. A backslash before what has a meaning would take it
// away, and no form of one is read alike by all receivers: it becomes '_'.
void Escape(std::string_view text, bool measurement, std::string& out) {
  constexpr std::string_view kMeanings = "\\,= ";
  const std::string shown = Printable(text);
  for (size_t i = 0; i < shown.size(); ++i) {
    const char c = shown[i];
    const char next = i + 1 < shown.size() ? shown[i + 1] : ' ';
    if (c == '\\' && kMeanings.find(next) != std::string_view::npos) {
      out += '_';
      continue;
    }
    if (c == ',' || c == ' ' || (c == '=' && !measurement)) out += '\\';
    out += c;
  }
}

class Influx : public Encoder {
 public:
  void Prepare(Line& line) const override {
    line.head.clear();
    Escape(line.name, true, line.head);
    for (const auto& [key, value] : line.labels.pairs()) {
      if (value.empty()) continue;
      line.head += ',';
      Escape(key, false, line.head);
      line.head += '=';
      Escape(value, false, line.head);
    }
    line.head += " value=";
  }

  bool Takes(double value) const override { return std::isfinite(value); }

  void Encode(std::span<const Run> runs, std::span<const Line* const>,
              std::string& body) const override {
    for (const Run& run : runs) {
      for (const Sample& sample : run.samples) {
        body += run.line->head;
        AppendNumber(sample.value, body);
        body += ' ';
        AppendNumber(sample.time, body);
        body += '\n';
      }
    }
  }

  // "partial write: ... dropped=2": the others are stored.
  Verdict Judge(const HttpAnswer& answer) const override {
    Verdict verdict = JudgeStatus(answer);
    const size_t dropped = answer.body.find("dropped=");
    if (answer.status != 400 || answer.body.find("partial write") == std::string::npos ||
        dropped == std::string::npos) {
      return verdict;
    }
    const std::string_view digits = std::string_view(answer.body).substr(dropped + 8);
    uint64_t count = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), count);
    verdict.kind = Verdict::Kind::kDone;
    verdict.refused = count;
    return verdict;
  }

  std::vector<std::string> Headers() const override {
    return {"Content-Type: text/plain; charset=utf-8"};
  }

  Probe MakeProbe(const std::string& url) const override {
    const size_t host = url.find("://") + 3;
    return {url.substr(0, url.find_first_of("/?", host)) + "/ping", false, ""};
  }
};

}  // namespace

std::unique_ptr<Encoder> MakeInflux() { return std::make_unique<Influx>(); }

}  // namespace sonde::forward
