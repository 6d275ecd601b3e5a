#include "daemon/collect/app/ring.h"

#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "core/text/names.h"

namespace sonde::collect {
namespace {

using client::Moment;

static_assert(client::kMomentRemark == static_cast<uint8_t>(AnnotationKind::kRemark) &&
              client::kMomentPhaseBegin == static_cast<uint8_t>(AnnotationKind::kPhaseBegin) &&
              client::kMomentPhaseEnd == static_cast<uint8_t>(AnnotationKind::kPhaseEnd) &&
              client::kMomentFigure == static_cast<uint8_t>(AnnotationKind::kFigure));

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

uint64_t AppRing::Read(const char* base, Nanos now, bool last, const Take& take) {
  return reader_.Read(base, now, last, [&](const Moment& moment) {
    std::optional<Annotation> annotation = Parse(moment);
    if (!annotation) return false;
    take(*std::move(annotation));
    return true;
  });
}

}  // namespace sonde::collect
