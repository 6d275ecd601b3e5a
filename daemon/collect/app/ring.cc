#include "daemon/collect/app/ring.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "core/text/names.h"

namespace sonde::collect {
namespace {

using client::kMoments;
using client::Moment;

static_assert(client::kMomentRemark == static_cast<uint8_t>(AnnotationKind::kRemark) &&
              client::kMomentPhaseBegin == static_cast<uint8_t>(AnnotationKind::kPhaseBegin) &&
              client::kMomentPhaseEnd == static_cast<uint8_t>(AnnotationKind::kPhaseEnd) &&
              client::kMomentFigure == static_cast<uint8_t>(AnnotationKind::kFigure));

// A process that tells more than that between two reads has not drawn its tickets one by one.
constexpr uint64_t kMostAtATime = uint64_t{1} << 40;

bool IsText(std::string_view text, size_t limit) {
  return !text.empty() && text.size() <= limit && names::IsPlainText(text);
}

std::optional<Annotation> Parse(const Moment& moment) {
  if (moment.kind > client::kMomentFigure ||
      size_t{moment.text_size} + moment.unit_size > sizeof(moment.text)) {
    return {};
  }
  const std::string_view text(moment.text, moment.text_size);
  const std::string_view unit(moment.text + moment.text_size, moment.unit_size);
  Annotation annotation;
  annotation.kind = static_cast<AnnotationKind>(moment.kind);
  if (annotation.kind == AnnotationKind::kFigure) {
    if (!names::IsMetricName(text) || !std::isfinite(moment.value)) return {};
    if (unit.size() > kMaxNameLength || !names::IsPlainText(unit)) return {};
    annotation.unit = unit;
    annotation.value = moment.value;
  } else {
    const bool remark = annotation.kind == AnnotationKind::kRemark;
    if (!IsText(text, remark ? client::kMaxRemark : kMaxNameLength)) return {};
  }
  annotation.text = text;
  annotation.first = annotation.last = moment.time;
  return annotation;
}

}  // namespace

uint64_t AppRing::Read(const char* base, bool last, const Take& take) {
  const auto* header = reinterpret_cast<const client::Header*>(base);
  const uint64_t end = __atomic_load_n(&header->moments, __ATOMIC_ACQUIRE);
  if (end <= next_) return 0;
  const auto limit = static_cast<uint32_t>(
      std::min<uint64_t>(__atomic_load_n(&header->moments_limit, __ATOMIC_ACQUIRE), kMoments));
  uint64_t lost = 0;
  if (end - next_ > kMoments) {
    lost = std::min(end - next_ - kMoments, kMostAtATime);
    next_ = end - kMoments;
  }
  Moment moment;
  for (; next_ < end; ++next_) {
    const Found found = Copy(base, next_, limit, moment);
    if (found == Found::kUnfinished && !last && next_ >= awaited_) {
      awaited_ = end;
      break;
    }
    std::optional<Annotation> annotation;
    if (found == Found::kWhole) annotation = Parse(moment);
    if (annotation) {
      take(*std::move(annotation));
    } else {
      ++lost;
    }
  }
  return lost;
}

AppRing::Found AppRing::Copy(const char* base, uint64_t ticket, uint32_t limit, Moment& out) {
  const size_t place = ticket % kMoments;
  if (place >= limit) return Found::kUnfinished;
  const char* from = base + client::kMomentsOffset + place * sizeof(Moment);
  const auto* sequence = reinterpret_cast<const uint64_t*>(from);
  const uint64_t whole = 2 * ticket + 2;
  const uint64_t before = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
  if (before != whole) return before < whole ? Found::kUnfinished : Found::kGone;
  for (size_t at = 0; at < sizeof(Moment); at += sizeof(uint64_t)) {
    const uint64_t word =
        __atomic_load_n(reinterpret_cast<const uint64_t*>(from + at), __ATOMIC_ACQUIRE);
    std::memcpy(reinterpret_cast<char*>(&out) + at, &word, sizeof(word));
  }
  return __atomic_load_n(sequence, __ATOMIC_RELAXED) == whole ? Found::kWhole : Found::kGone;
}

}  // namespace sonde::collect
