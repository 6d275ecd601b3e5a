// The daemon's reader of what an application sends and of the memory it shares. The first byte
// chooses: a hello packet, a record, or a segment of which the rest gives header and records.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "daemon/collect/job/app_segment.h"

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      (void)collect::ParseHello(bytes);
      break;
    case 1:
      (void)collect::ParseRecord(bytes);
      break;
    default:
      ReadSegment(bytes);
  }
  return 0;
}
