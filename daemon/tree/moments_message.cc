#include "daemon/tree/moments_message.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/bytes.h"
#include "core/text/names.h"
#include "series/block/series_bytes.h"

namespace sonde::tree {
namespace {

// The fewest bytes of each.
constexpr size_t kMinAnnotation = 8;
constexpr size_t kMinSketch = kMinSeriesBytes + 10;

uint64_t Plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

bool Before(const Annotation& a, const Annotation& b) {
  return std::tie(a.kind, a.text, a.unit) < std::tie(b.kind, b.text, b.unit);
}

bool Before(const Series& a, const Series& b) {
  if (a.metric.name != b.metric.name) return a.metric.name < b.metric.name;
  return a.tags < b.tags;
}

bool IsFit(const Annotation& a) {
  const bool figure = a.kind == AnnotationKind::kFigure;
  return a.kind <= AnnotationKind::kFigure && !a.text.empty() && a.text.size() <= kMaxTextLength &&
         (figure ? names::IsMetricName(a.text) : names::IsPlainText(a.text)) &&
         a.unit.size() <= kMaxNameLength && names::IsPlainText(a.unit) && std::isfinite(a.value) &&
         a.count > 0 && a.first >= 0 && a.first <= a.last;
}

// Whether ReadSeries takes it.
bool IsFit(const Series& series) {
  std::string bytes;
  ByteWriter out(bytes);
  WriteSeries(series, out);
  ByteReader in(bytes);
  ReadSeries(in);
  return in.done() && series.metric.type == MetricType::kHistogram;
}

size_t Buckets(const collect::Moments& moments) {
  size_t buckets = 0;
  for (const NamedSketch& sketch : moments.sketches) buckets += sketch.sketch.buckets().size();
  return buckets;
}

bool MergeOne(Annotation&& from, std::vector<Annotation>& into) {
  const auto before = [](const Annotation& a, const Annotation& b) { return Before(a, b); };
  const auto at = std::lower_bound(into.begin(), into.end(), from, before);
  if (at != into.end() && at->SameAs(from)) {
    const uint64_t count = Plus(at->count, from.count);
    at->Merge(from);
    at->count = count;
    return true;
  }
  if (into.size() == kMaxAnnotations || !IsFit(from)) return false;
  into.insert(at, std::move(from));
  return true;
}

bool MergeOne(NamedSketch&& from, std::vector<NamedSketch>& into) {
  const auto at = std::lower_bound(
      into.begin(), into.end(), from,
      [](const NamedSketch& a, const NamedSketch& b) { return Before(a.series, b.series); });
  if (at != into.end() && !Before(from.series, at->series)) {
    at->sketch.Merge(from.sketch);
    return true;
  }
  if (into.size() == kMaxSketches || !IsFit(from.series)) return false;
  into.insert(at, std::move(from));
  return true;
}

void Write(const Annotation& a, ByteWriter& out) {
  out.Fixed(static_cast<uint8_t>(a.kind));
  out.Text(a.text);
  out.Varint(static_cast<uint64_t>(a.first));
  out.Varint(static_cast<uint64_t>(a.last) - static_cast<uint64_t>(a.first));
  out.Varint(a.count);
  out.Varint(a.node);
  out.Varint(a.task);
  if (a.kind != AnnotationKind::kFigure) return;
  out.Text(a.unit);
  out.Fixed(a.value);
}

Annotation ReadAnnotation(ByteReader& in) {
  Annotation a;
  a.kind = static_cast<AnnotationKind>(in.Fixed<uint8_t>());
  a.text = in.Text(kMaxTextLength);
  const uint64_t first = in.Varint();
  const uint64_t length = in.Varint();
  if (first > INT64_MAX || length > INT64_MAX - first) in.Fail();
  a.first = static_cast<Nanos>(first);
  a.last = static_cast<Nanos>(first + length);
  a.count = in.Varint();
  const uint64_t node = in.Varint();
  const uint64_t task = in.Varint();
  if (node > UINT32_MAX || task > UINT32_MAX) in.Fail();
  a.node = static_cast<uint32_t>(node);
  a.task = static_cast<uint32_t>(task);
  if (a.kind == AnnotationKind::kFigure) {
    a.unit = in.Text(kMaxNameLength);
    a.value = in.Fixed<double>();
  }
  if (!in.ok() || !IsFit(a)) in.Fail();
  return a;
}

}  // namespace

void Merge(collect::Moments from, collect::Moments& into) {
  into.lost = Plus(into.lost, from.lost);
  for (Annotation& a : from.annotations) {
    // Only a figure has these; what was left in others would make equals differ.
    if (a.kind != AnnotationKind::kFigure) a.unit.clear(), a.value = 0;
    if (!MergeOne(std::move(a), into.annotations)) into.lost = Plus(into.lost, 1);
  }
  size_t buckets = Buckets(into);
  for (NamedSketch& sketch : from.sketches) {
    buckets += sketch.sketch.buckets().size();
    if (buckets > kMaxSketchBuckets) buckets = Buckets(into) + sketch.sketch.buckets().size();
    if (buckets > kMaxSketchBuckets || !MergeOne(std::move(sketch), into.sketches)) {
      into.lost = Plus(into.lost, 1);
    }
  }
}

std::string Encode(const MomentsMessage& m) {
  std::string bytes;
  ByteWriter out(bytes);
  out.Varint(m.sequence);
  out.Varint(m.moments.lost);
  out.Varint(m.moments.annotations.size());
  for (const Annotation& a : m.moments.annotations) Write(a, out);
  out.Varint(m.moments.sketches.size());
  for (const NamedSketch& sketch : m.moments.sketches) {
    WriteSeries(sketch.series, out);
    sketch.sketch.Encode(out);
  }
  return bytes;
}

Status Decode(std::string_view bytes, MomentsMessage& m) {
  ByteReader in(bytes);
  collect::Moments& moments = m.moments;
  m.sequence = in.Varint();
  moments.lost = in.Varint();
  moments.annotations.clear();
  moments.sketches.clear();
  for (size_t n = in.Count(kMinAnnotation, kMaxAnnotations); n > 0 && in.ok(); --n) {
    Annotation a = ReadAnnotation(in);
    if (!moments.annotations.empty() && !Before(moments.annotations.back(), a)) in.Fail();
    moments.annotations.push_back(std::move(a));
  }
  for (size_t n = in.Count(kMinSketch, kMaxSketches); n > 0 && in.ok(); --n) {
    NamedSketch one;
    one.series = ReadSeries(in);
    Result<Sketch> sketch = Sketch::Decode(in);
    if (!sketch.ok() || one.series.metric.type != MetricType::kHistogram) in.Fail();
    if (!moments.sketches.empty() && !Before(moments.sketches.back().series, one.series)) in.Fail();
    if (!in.ok()) break;
    one.sketch = *std::move(sketch);
    moments.sketches.push_back(std::move(one));
  }
  if (in.done() && m.sequence > 0 && Buckets(moments) <= kMaxSketchBuckets) return {};
  return {Code::kCorrupt, "moments message is malformed"};
}

std::string Encode(const MomentsAck& m) {
  std::string bytes;
  ByteWriter out(bytes);
  out.Fixed(static_cast<uint8_t>(m.fate));
  out.Varint(m.sequences.size());
  for (const uint64_t sequence : m.sequences) out.Varint(sequence);
  return bytes;
}

Status Decode(std::string_view bytes, MomentsAck& m) {
  ByteReader in(bytes);
  const auto fate = in.Fixed<uint8_t>();
  m.fate = static_cast<MomentsAck::Fate>(fate);
  m.sequences.resize(in.Count(1, kMaxAckedMoments));
  for (uint64_t& sequence : m.sequences) sequence = in.Varint();
  if (in.done() && fate <= static_cast<uint8_t>(MomentsAck::Fate::kSafe)) return {};
  return {Code::kCorrupt, "moments acknowledgement is malformed"};
}

}  // namespace sonde::tree
