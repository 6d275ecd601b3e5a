// The daemon's reader of what an application sends and of the memory it shares. The first byte
// chooses: a hello packet, a record, a segment of which the rest gives header and records, or one
// whose distributions or whose ring of moments the rest writes and reads in turn.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "daemon/collect/app/annotations.h"
#include "daemon/collect/app/histograms.h"
#include "daemon/collect/app/ring.h"
#include "daemon/collect/app/segment.h"

namespace {

using namespace sonde;

// Past the constant fields: records_end, shards and the first shard limits.
constexpr size_t kHeaderBytes = 128;

char* Segment() {
  static char* const base =
      static_cast<char*>(mmap(nullptr, client::kSegmentSize, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (base == MAP_FAILED) abort();
  return base;
}

void ReadSegment(std::string_view bytes) {
  char* base = Segment();
  const size_t head = std::min(bytes.size(), kHeaderBytes);
  const size_t body = std::min(bytes.size() - head, client::kRecordsSize);
  std::memset(base, 0, sizeof(client::Header));
  std::memcpy(base + offsetof(client::Header, records_end), bytes.data(), head);
  std::memset(base + client::kRecordsOffset, 0, 8192);
  std::memcpy(base + client::kRecordsOffset, bytes.data() + head, body);
  collect::AppSegment segment(base);
  std::vector<collect::AppMetric> metrics;
  const bool good = segment.ReadNew(64, metrics).ok();
  std::vector<client::Count> totals(64);
  segment.AddCounters(totals);
  for (const collect::AppMetric& metric : metrics) {
    if (!CheckMetricName(metric.series.metric.name).ok()) abort();
    if (metric.slot >= client::kMaxMetrics) abort();
    segment.ReadGauge(metric.slot);
  }
  if (good && metrics.size() < 64 && segment.HasNew()) abort();
}

constexpr size_t kParts = 4;  // distributions that are written

client::Distribution& PartAt(char* base, size_t part) {
  return *reinterpret_cast<client::Distribution*>(base + client::kDistributionsOffset +
                                                  part % kParts * client::kDistributionSize);
}

void CheckSketches(collect::AppHistograms& histograms) {
  std::array<double, collect::AppHistograms::kSeries> values = {};
  histograms.Fill(values);
  collect::Moments moments;
  histograms.Take(moments);
  for (const NamedSketch& named : moments.sketches) {
    const Sketch& sketch = named.sketch;
    if (sketch.empty() || !std::isfinite(sketch.sum()) || sketch.min() > sketch.max()) abort();
    if (!std::isfinite(sketch.min()) || !std::isfinite(sketch.max())) abort();
    for (const auto i : {collect::AppHistograms::kMedian, collect::AppHistograms::kMax}) {
      if (values[i] < sketch.min() || values[i] > sketch.max()) abort();
    }
  }
}

// Each step: a byte that says what, and what it needs.
void ReadDistributions(std::string_view bytes) {
  char* base = Segment();
  auto* header = reinterpret_cast<client::Header*>(base);
  auto* owners = reinterpret_cast<uint16_t*>(base + client::kOwnersOffset);
  std::memset(header, 0, sizeof(*header));
  std::memset(owners, 0, kParts * sizeof(*owners));
  for (size_t i = 0; i < kParts; ++i) std::memset(&PartAt(base, i), 0, sizeof(PartAt(base, i)));
  collect::AppDistributions reader;
  reader.Want(0);
  reader.Want(3);
  collect::AppHistograms histograms;
  Series series;
  series.metric.name = "h";
  histograms.Add("h", series, {0, 1, 2, 3, 4});
  uint64_t before[4] = {};
  const auto take = [&](uint32_t number, const collect::AppObservations& came) {
    if (!reader.Wants(number) || came.count == 0) abort();
    if (came.low + came.counts->size() > histogram::kBuckets) abort();
    if (came.total_count < before[number] || !std::isfinite(came.total_sum)) abort();
    before[number] = came.total_count;
    histograms.Observe(0, came);
  };
  for (ByteReader in(bytes); in.left() > 0;) {
    const uint8_t what = in.Fixed<uint8_t>(), part = in.Fixed<uint8_t>();
    switch (what % 8) {
      case 0:
        header->distributions = in.Fixed<uint16_t>();
        break;
      case 1:
        owners[part % kParts] = in.Fixed<uint16_t>();
        break;
      case 2:
        PartAt(base, part).sum = in.Fixed<double>();
        break;
      case 3:
        PartAt(base, part).min = in.Fixed<double>();
        break;
      case 4:
        PartAt(base, part).max = in.Fixed<double>();
        break;
      case 5: {
        const uint16_t bucket = in.Fixed<uint16_t>();
        PartAt(base, part).counts[bucket % histogram::kBuckets] = in.Fixed<uint64_t>();
        break;
      }
      default: {
        using Extent = collect::AppDistributions::Extent;
        const Extent extent = what % 8 == 6 ? Extent::kChanged : Extent::kAll;
        if (!reader.Read(base, extent, take).ok()) return;
        CheckSketches(histograms);
      }
    }
  }
}

// What a process may do to a ring; `read` with whether nobody writes any more.
template <typename Entry, typename Read>
void ReadRing(std::string_view bytes, size_t offset, uint64_t client::Header::*tickets,
              uint32_t client::Header::*limit, const Read& read) {
  char* base = Segment();
  auto* header = reinterpret_cast<client::Header*>(base);
  auto* entries = reinterpret_cast<Entry*>(base + offset);
  std::memset(header, 0, sizeof(*header));
  std::memset(entries, 0, 256 * sizeof(*entries));
  for (ByteReader in(bytes); in.left() > 0;) {
    const uint8_t what = in.Fixed<uint8_t>();
    switch (what % 4) {
      case 0:
        header->*tickets = in.Fixed<uint64_t>();
        header->*limit = in.Fixed<uint16_t>();
        break;
      case 1:
        header->*tickets += in.Fixed<uint8_t>();
        break;
      case 2: {
        Entry& entry = entries[in.Fixed<uint8_t>()];
        const std::string_view raw = in.Raw(std::min(in.left(), sizeof(entry)));
        std::memcpy(&entry, raw.data(), raw.size());
        break;
      }
      default:
        read(base, what % 8 == 7);
    }
  }
}

void ReadMoments(std::string_view bytes) {
  collect::AppRing reader;
  collect::AppAnnotations annotations;
  Nanos now = 0;
  const auto take = [&](Annotation annotation) {
    if (annotation.text.empty() || annotation.text.size() > client::kMaxRemark ||
        !names::IsPlainText(annotation.text) || !std::isfinite(annotation.value)) {
      abort();
    }
    annotations.Add(std::move(annotation));
  };
  ReadRing<client::Moment>(bytes, client::kMomentsOffset, &client::Header::moments,
                           &client::Header::moments_limit, [&](const char* base, bool last) {
                             annotations.Lose(reader.Read(base, now += kSecond, last, take));
                           });
  collect::Moments out;
  annotations.Take(out);
  if (out.annotations.size() > collect::AppAnnotations::kMax) abort();
}

void ReadPast(std::string_view bytes) {
  collect::PastReader reader;
  uint64_t taken = 0;
  Nanos now = 0;
  const auto take = [&](const client::PastValue& value) {
    if (value.sequence % 2 != 0) abort();  // half written
    return ++taken % 2 == 0;
  };
  ReadRing<client::PastValue>(
      bytes, client::kPastOffset, &client::Header::past, &client::Header::past_limit,
      [&](const char* base, bool last) { (void)reader.Read(base, now += kSecond, last, take); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      (void)collect::ParseHello(bytes);
      break;
    case 1:
      (void)collect::ParseRecord(bytes);
      break;
    case 2:
      ReadSegment(bytes);
      break;
    case 3:
      ReadDistributions(bytes);
      break;
    default:
      data[0] < 128 ? ReadMoments(bytes) : ReadPast(bytes);
  }
  return 0;
}
