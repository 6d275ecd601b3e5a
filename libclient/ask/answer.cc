#include "libclient/ask/answer.h"

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/names.h"
#include "libclient/ask/layout.h"

namespace sonde::client {
namespace {

constexpr size_t kMaxTagsOfAnswer = kMaxTags + 4;  // the daemon adds host, job, task and stat
constexpr const char* kTypes[] = {"gauge", "counter", "histogram"};

// Memory that is measured in a first walk over a body and given out in a second.
class Arena {
 public:
  explicit Arena(char* base) : base_(base) {}

  bool measuring() const { return base_ == nullptr; }
  size_t used() const { return used_; }

  // Zeros; nullptr while measuring.
  template <typename T>
  T* Take(size_t count) {
    used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    T* const taken = measuring() ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += count * sizeof(T);
    if (taken != nullptr) memset(static_cast<void*>(taken), 0, count * sizeof(T));
    return taken;
  }
  const char* Text(std::string_view text) {
    char* const copy = Take<char>(text.size() + 1);
    if (copy != nullptr && !text.empty()) memcpy(copy, text.data(), text.size());
    return copy;
  }

 private:
  char* base_;
  size_t used_ = 0;
};

// Every reader below walks the same way both times; while measuring, `out` is nullptr.

void ReadTags(ByteReader& in, Arena& arena, const sonde_tag_t*& tags, size_t& count) {
  count = in.Count(2, kMaxTagsOfAnswer);
  sonde_tag_t* const out = arena.Take<sonde_tag_t>(count);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const char* const key = arena.Text(in.Text(kMaxNameLength));
    const char* const value = arena.Text(in.Text(kMaxNameLength));
    if (out != nullptr) out[i] = {key, value};
  }
  tags = out;
}

void ReadAggregated(ByteReader& in, Arena& arena, sonde_series_t& series) {
  series.aggregated_count = in.Count(1, kMaxTagsOfAnswer * 4);
  const char** const out = arena.Take<const char*>(series.aggregated_count);
  for (size_t i = 0; i < series.aggregated_count && in.ok(); ++i) {
    const char* const key = arena.Text(in.Text(kMaxNameLength));
    if (out != nullptr) out[i] = key;
  }
  series.aggregated = out;
}

void ReadPoints(ByteReader& in, Arena& arena, sonde_series_t& series) {
  series.point_count = in.Count(1 + sizeof(double), kMaxAnswer);
  sonde_point_t* const out = arena.Take<sonde_point_t>(series.point_count);
  uint64_t time = 0;
  for (size_t i = 0; i < series.point_count && in.ok(); ++i) {
    time += static_cast<uint64_t>(in.Signed());
    const auto value = in.Fixed<double>();
    if (out != nullptr) out[i] = {static_cast<int64_t>(time), value};
  }
  series.points = out;
}

sonde_result_t* ReadResult(ByteReader in, Arena& arena, bool& ok) {
  sonde_result_t* const result = arena.Take<sonde_result_t>(1);
  const auto version = in.Fixed<uint8_t>();
  const uint64_t answered = in.Varint();
  const uint64_t expected = in.Varint();
  const auto flags = in.Fixed<uint8_t>();
  const size_t count = in.Count(4, kMaxAnswer);
  sonde_series_t* const out = arena.Take<sonde_series_t>(count);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    sonde_series_t series = {};
    series.metric = arena.Text(in.Text(kMaxNameLength));
    ReadTags(in, arena, series.tags, series.tag_count);
    ReadAggregated(in, arena, series);
    ReadPoints(in, arena, series);
    if (out != nullptr) out[i] = series;
  }
  ok = in.done() && version == kBodyVersion && answered <= UINT32_MAX && expected <= UINT32_MAX;
  if (result != nullptr) {
    *result = {out,
               count,
               static_cast<uint32_t>(answered),
               static_cast<uint32_t>(expected),
               (flags & kLate) != 0 ? 1 : 0,
               0,
               (flags & kRowsOnly) != 0 ? 1 : 0};
  }
  return result;
}

sonde_list_t* ReadList(ByteReader in, Arena& arena, bool& ok) {
  sonde_list_t* const list = arena.Take<sonde_list_t>(1);
  const auto version = in.Fixed<uint8_t>();
  const size_t count = in.Count(7, kMaxAnswer);
  sonde_metric_info_t* const out = arena.Take<sonde_metric_info_t>(count);
  bool types = true;
  for (size_t i = 0; i < count && in.ok(); ++i) {
    sonde_metric_info_t info = {};
    info.name = arena.Text(in.Text(kMaxNameLength));
    info.unit = arena.Text(in.Text(kMaxNameLength));
    info.help = arena.Text(in.Text(kMaxTextLength));
    const auto type = in.Fixed<uint8_t>();
    types = types && type < sizeof(kTypes) / sizeof(kTypes[0]);
    if (types) info.type = kTypes[type];
    info.level = in.Fixed<uint8_t>();
    in.Fixed<uint8_t>();  // how it is reduced
    ReadTags(in, arena, info.tags, info.tag_count);
    if (out != nullptr) out[i] = info;
  }
  ok = in.done() && version == kBodyVersion && types;
  if (list != nullptr) *list = {out, count};
  return list;
}

template <typename T>
T* Decode(std::string_view body, T* (*read)(ByteReader, Arena&, bool&)) {
  bool ok = false;
  Arena measured(nullptr);
  read(ByteReader(body), measured, ok);
  if (!ok) return nullptr;
  char* const memory = static_cast<char*>(malloc(measured.used()));
  if (memory == nullptr) return nullptr;
  Arena arena(memory);
  return read(ByteReader(body), arena, ok);
}

}  // namespace

sonde_result_t* DecodeResult(std::string_view body) { return Decode(body, &ReadResult); }
sonde_list_t* DecodeList(std::string_view body) { return Decode(body, &ReadList); }

}  // namespace sonde::client
