#include "libclient/registry.h"

#include <string.h>
#include <sys/mman.h>

#include <string_view>

#include "core/text/hash.h"
#include "libclient/error.h"

namespace sonde::client {
namespace {

static_assert(kMaxMetrics < UINT16_MAX);

char* Put(char* at, std::string_view text) {
  memcpy(at, text.data(), text.size());
  return at + text.size();
}

// Builds a record, all but its slot, in a buffer of kMaxRecordSize bytes; a checked record fits.
void WriteRecord(char* out, const Declaration& d, const SortedTags& tags) {
  const std::string_view name = Text(d.name), unit = Text(d.unit), help = Text(d.help);
  char* at = Put(Put(Put(out + sizeof(Record), name), unit), help);
  for (size_t i = 0; i < tags.count; ++i) {
    *at++ = static_cast<char>(tags.keys[i].size());
    *at++ = static_cast<char>(tags.values[i].size());
    at = Put(Put(at, tags.keys[i]), tags.values[i]);
  }
  while ((at - out) % 8 != 0) *at++ = '\0';
  Record record = {};
  record.size = static_cast<uint32_t>(at - out);
  record.type = d.type;
  record.level = static_cast<uint8_t>(d.level == 0 ? 1 : d.level);
  record.reduction = d.type == kTypeGauge ? kReduceMean : kReduceSum;
  record.tag_count = static_cast<uint8_t>(tags.count);
  record.slots = 1;
  record.name_size = static_cast<uint16_t>(name.size());
  record.unit_size = static_cast<uint16_t>(unit.size());
  record.help_size = static_cast<uint16_t>(help.size());
  memcpy(out, &record, sizeof(record));
}

// The name and the tags tell one metric of a process from another.
struct Identity {
  std::string_view name;
  std::string_view tags;

  explicit Identity(const char* record) {
    Record r;
    memcpy(&r, record, sizeof(r));
    const char* text = record + sizeof(Record);
    const size_t fixed = r.name_size + r.unit_size + r.help_size;
    name = std::string_view(text, r.name_size);
    size_t tags_size = 0;
    const char* tag = text + fixed;
    for (int i = 0; i < r.tag_count; ++i) {
      const auto* sizes = reinterpret_cast<const unsigned char*>(tag + tags_size);
      tags_size += 2u + sizes[0] + sizes[1];
    }
    tags = std::string_view(tag, tags_size);
  }
  bool operator==(const Identity&) const = default;

  uint32_t Hash() const { return Fnv1a32(tags, Fnv1a32(name)); }
};

}  // namespace

bool Registry::Create() {
  if (entries_ != nullptr) return true;
  const size_t size = kMaxMetrics * sizeof(Entry) + kBuckets * sizeof(uint16_t);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  entries_ = static_cast<Entry*>(memory);
  buckets_ = reinterpret_cast<uint16_t*>(entries_ + kMaxMetrics);
  return true;
}

sonde_metric_t* Registry::Add(Segment& segment, const Declaration& declaration, int step_level,
                              int* code) {
  SortedTags tags;
  *code = CheckDeclaration(declaration);
  if (*code == SONDE_OK) *code = SortTags(declaration, &tags);
  if (*code != SONDE_OK) return nullptr;
  alignas(Record) char record[kMaxRecordSize];
  WriteRecord(record, declaration, tags);
  const Identity identity(record);
  const uint32_t hash = identity.Hash();
  size_t bucket = hash % kBuckets;
  for (; buckets_[bucket] != 0; bucket = (bucket + 1) % kBuckets) {
    Entry& entry = entries_[buckets_[bucket] - 1];
    const char* other = segment.records() + entry.record;
    if (entry.hash != hash || !(Identity(other) == identity)) continue;
    if (entry.type() == declaration.type) return &entry.metric;
    *code =
        Fail(SONDE_CONFLICT, "'%s' with these tags is a %s already and cannot be a %s",
             Quoted(declaration.name).c_str(), TypeName(entry.type()), TypeName(declaration.type));
    return nullptr;
  }
  const int level = declaration.level == 0 ? 1 : declaration.level;
  if (step_level >= 0 && level > step_level) {
    *code = Fail(SONDE_LEVEL, "the metric '%s' is of level %d and the step's telemetry level is %d",
                 Quoted(declaration.name).c_str(), level, step_level);
    return nullptr;
  }
  Entry* entry = Append(segment, record, hash, code);
  if (entry == nullptr) return nullptr;
  buckets_[bucket] = static_cast<uint16_t>(count_);
  return &entry->metric;
}

// Gives the metric its place in memory and the record its number.
int Registry::Place(Segment& segment, Record* head, sonde_metric_t* metric) {
  *metric = {nullptr, UINT32_MAX, UINT32_MAX};
  if (head->type == kTypeCounter) {
    metric->slot = head->slot = static_cast<uint32_t>(counters_++);
    return SONDE_OK;
  }
  if (head->type == kTypeHistogram) {
    if (histograms_ == kMaxHistograms) {
      return Fail(SONDE_LIMIT, "this process has %zu histograms already; no more are recorded",
                  histograms_);
    }
    metric->histogram = head->slot = static_cast<uint32_t>(histograms_++);
    return SONDE_OK;
  }
  if (!segment.ReserveCells((gauges_ + 1) * kCellSize)) return SONDE_SYSTEM;
  head->slot = static_cast<uint32_t>(gauges_++);
  Cell* cell = segment.cell(head->slot);
  cell->value = __builtin_nan("");
  metric->cell = &cell->value;
  return SONDE_OK;
}

// Places the record and publishes it.
Registry::Entry* Registry::Append(Segment& segment, const char* record, uint32_t hash, int* code) {
  Record head;
  memcpy(&head, record, sizeof(head));
  if (count_ == kMaxMetrics || records_end_ + head.size > kRecordsSize) {
    *code = Fail(SONDE_LIMIT, "this process has %zu metrics already; no more are recorded", count_);
    return nullptr;
  }
  *code = SONDE_SYSTEM;
  if (!segment.ReserveRecords(records_end_ + head.size)) return nullptr;
  Entry& entry = entries_[count_];
  *code = Place(segment, &head, &entry.metric);
  if (*code != SONDE_OK) return nullptr;
  char* place = segment.records() + records_end_;
  memcpy(place, &head, sizeof(head));
  memcpy(place + sizeof(head), record + sizeof(head), head.size - sizeof(head));
  entry.record = static_cast<uint32_t>(records_end_);
  entry.hash = hash;
  records_end_ += head.size;
  ++count_;
  __atomic_store_n(&segment.header()->records_end, records_end_, __ATOMIC_RELEASE);
  return &entry;
}

}  // namespace sonde::client
