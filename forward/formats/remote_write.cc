// Prometheus' remote write, version 1.0: a WriteRequest in Protocol Buffers, packed by Snappy.
//
//   WriteRequest  { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3; }
//   TimeSeries    { repeated Label labels = 1; repeated Sample samples = 2; }
//   Label         { string name = 1; string value = 2; }
//   Sample        { double value = 1; int64 timestamp = 2; }    milliseconds
//   MetricMetadata{ MetricType type = 1; string metric_family_name = 2; string help = 4;
//                   string unit = 5; }
//
// Labels are sorted by name, __name__ among them. Receivers take a request as a whole or not at
// all.
#include <snappy-c.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/bytes.h"
#include "forward/formats/encoder.h"

namespace sonde::forward {
namespace {

constexpr uint64_t kStaleBits = 0x7ff0000000000002;  // Prometheus' value.StaleNaN
const double kStale = std::bit_cast<double>(kStaleBits);

enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };
constexpr char Key(int field, Wire wire) { return static_cast<char>(field << 3 | wire); }

void Varint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

size_t VarintSize(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

void Text(int field, std::string_view text, std::string& out) {
  out += Key(field, kBytes);
  Varint(text.size(), out);
  out += text;
}

void Label(std::string_view name, std::string_view value, std::string& out) {
  out += Key(1, kBytes);
  Varint(2 + VarintSize(name.size()) + name.size() + VarintSize(value.size()) + value.size(), out);
  Text(1, name, out);
  Text(2, value, out);
}

// The size of a Sample: 1 + 8 bytes, and 1 + the bytes of the time.
size_t SampleSize(int64_t millis) { return 10 + VarintSize(static_cast<uint64_t>(millis)); }

void AppendSample(const Sample& sample, std::string& out) {
  const auto millis = static_cast<uint64_t>(ToMillis(sample.time));
  char bytes[32];
  char* at = bytes;
  *at++ = Key(2, kBytes);
  *at++ = static_cast<char>(SampleSize(ToMillis(sample.time)));
  *at++ = Key(1, kFixed64);
  std::memcpy(at, &sample.value, sizeof sample.value);  // little-endian, as in the format
  at += sizeof sample.value;
  *at++ = Key(2, kVarint);
  uint64_t rest = millis;
  for (; rest >= 0x80; rest >>= 7) *at++ = static_cast<char>(rest | 0x80);
  *at++ = static_cast<char>(rest);
  out.append(bytes, at);
}
static_assert(std::endian::native == std::endian::little);

class RemoteWrite : public Encoder {
 public:
  void Prepare(Line& line) const override {
    line.head.clear();
    bool named = false;
    constexpr std::string_view kName = "__name__";
    for (const auto& [key, value] : line.labels.pairs()) {
      if (!named && key > kName) Label(kName, line.name, line.head), named = true;
      if (!value.empty()) Label(key, value, line.head);
    }
    if (!named) Label(kName, line.name, line.head);
  }

  bool Takes(double) const override { return true; }
  const double* StaleMarker() const override { return &kStale; }

  void Encode(std::span<const Run> runs, std::span<const Line* const> described,
              std::string& body) const override {
    std::string raw;
    raw.reserve(CountSamples(runs) * 18 + runs.size() * 256);
    for (const Run& run : runs) {
      size_t size = run.line->head.size();
      for (const Sample& sample : run.samples) size += 2 + SampleSize(ToMillis(sample.time));
      raw += Key(1, kBytes);
      Varint(size, raw);
      raw += run.line->head;
      for (const Sample& sample : run.samples) AppendSample(sample, raw);
    }
    for (const Line* line : described) AppendMetadata(*line, raw);
    size_t size = snappy_max_compressed_length(raw.size());
    const size_t before = body.size();
    body.resize(before + size);
    snappy_compress(raw.data(), raw.size(), body.data() + before, &size);
    body.resize(before + size);
  }

  // A receiver silently takes the newest sample again; any other old sample is out of order.
  Verdict Judge(const HttpAnswer& answer) const override {
    Verdict verdict = JudgeStatus(answer);
    const auto says = [&](const char* text) { return answer.body.find(text) != std::string::npos; };
    verdict.there = says("out of order") || says("duplicate sample");
    verdict.order = verdict.there || says("out of bounds") || says("too old");
    return verdict;
  }

  std::vector<std::string> Headers() const override {
    return {"Content-Type: application/x-protobuf", "Content-Encoding: snappy",
            "X-Prometheus-Remote-Write-Version: 0.1.0"};
  }

  Probe MakeProbe(const std::string& url) const override {
    Probe probe{url, true, ""};
    Encode({}, {}, probe.body);
    return probe;
  }

 private:
  static void AppendMetadata(const Line& line, std::string& out) {
    constexpr uint64_t kUnknown = 0, kCounter = 1, kGauge = 2;
    const uint64_t type = line.metric.type == MetricType::kCounter ? kCounter
                          : line.metric.type == MetricType::kGauge ? kGauge
                                                                   : kUnknown;
    std::string text;
    text += Key(1, kVarint);
    Varint(type, text);
    Text(2, line.name, text);
    if (!line.metric.help.empty()) Text(4, line.metric.help, text);
    if (!line.metric.unit.empty()) Text(5, line.metric.unit, text);
    Text(3, text, out);
  }
};

}  // namespace

std::unique_ptr<Encoder> MakeRemoteWrite() { return std::make_unique<RemoteWrite>(); }

}  // namespace sonde::forward
