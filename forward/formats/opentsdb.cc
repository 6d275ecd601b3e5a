// OpenTSDB's /api/put: a list of points in JSON, times in milliseconds. A point that comes again
// replaces itself.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "forward/formats/encoder.h"

namespace sonde::forward {
namespace {

// As many tags as OpenTSDB accepts by default.
constexpr size_t kMostTags = 8;

// Keeps letters, digits and -_./; others become '_'.
void Clean(std::string_view text, std::string& out) {
  for (const char c : text) {
    const bool good = names::IsLetter(c) || names::IsDigit(c) || c == '-' || c == '.' || c == '/';
    out += good ? c : '_';
  }
}

class OpenTsdb : public Encoder {
 public:
  void Prepare(Line& line) const override {
    std::string tags;
    size_t count = 0;
    const size_t all = line.labels.pairs().size();
    for (const auto& [key, value] : line.labels.pairs()) {
      // The label that says least is dropped first.
      const bool spare =
          (all > kMostTags && key == "cluster") || (all > kMostTags + 1 && key == "user");
      if (spare || value.empty() || count == kMostTags) continue;
      if (count++ > 0) tags += ',';
      tags += '"';
      Clean(key, tags);
      tags += "\":\"";
      Clean(value, tags);
      tags += '"';
    }
    line.head = "{\"metric\":\"";
    Clean(line.name, line.head);
    line.head += "\",\"tags\":{" + tags + "},\"timestamp\":";
  }

  bool Takes(double value) const override { return std::isfinite(value); }

  void Encode(std::span<const Run> runs, std::span<const Line* const>,
              std::string& body) const override {
    char before = '[';
    for (const Run& run : runs) {
      for (const Sample& sample : run.samples) {
        body += before;
        before = ',';
        body += run.line->head;
        AppendNumber(ToMillis(sample.time), body);
        body += ",\"value\":";
        AppendNumber(sample.value, body);
        body += '}';
      }
    }
    body += before == '[' ? "[]" : "]";
  }

  // {"success": 1, "failed": 2, "errors": [...]}: the others are stored.
  Verdict Judge(const HttpAnswer& answer) const override {
    Verdict verdict = JudgeStatus(answer);
    if (answer.status != 400) return verdict;
    const size_t failed = answer.body.find("\"failed\":");
    if (failed == std::string::npos) return verdict;
    std::string_view digits = std::string_view(answer.body).substr(failed + 9);
    digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
    uint64_t count = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), count);
    verdict.kind = Verdict::Kind::kDone;
    verdict.refused = count;
    const size_t error = answer.body.find("\"error\":\"");
    if (error == std::string::npos) return verdict;
    std::string why = answer.body.substr(error + 9);
    why.resize(std::min(why.find('"'), why.size()));
    if (names::IsPlainText(why)) verdict.why = why;
    return verdict;
  }

  std::vector<std::string> Headers() const override { return {"Content-Type: application/json"}; }

  Probe MakeProbe(const std::string& url) const override {
    const size_t put = url.rfind("/put");
    return {(put == std::string::npos ? url : url.substr(0, put)) + "/version", false, ""};
  }
};

}  // namespace

std::unique_ptr<Encoder> MakeOpenTsdb() { return std::make_unique<OpenTsdb>(); }

}  // namespace sonde::forward
