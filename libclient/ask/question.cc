#include "libclient/ask/question.h"

#include <string_view>

#include "core/clocks.h"
#include "libclient/ask/layout.h"

namespace sonde::client {
namespace {

constexpr uint8_t kOnWire = kRate | kRateCounter | kRateDrop | kExplicitTags;
static_assert(SONDE_RATE == kRate && SONDE_RATE_COUNTER == kRateCounter &&
              SONDE_RATE_DROP == kRateDrop && SONDE_EXPLICIT_TAGS == kExplicitTags);

std::string_view TextOf(const char* text, const char* otherwise) {
  return text == nullptr ? otherwise : text;
}

void EncodeFilter(const char* type, std::string_view key, std::string_view value, bool group_by,
                  Bytes& out) {
  out.Text(TextOf(type, "literal_or"));
  out.Text(key);
  out.Text(value);
  out.Fixed(static_cast<uint8_t>(group_by ? 1 : 0));
}

}  // namespace

void EncodeQuestion(const sonde_question_t& q, Bytes& out) {
  const bool by_host = (q.flags & SONDE_BY_HOST) != 0, by_task = (q.flags & SONDE_BY_TASK) != 0;
  out.Text(TextOf(q.metric, ""));
  out.Text(TextOf(q.aggregator, "avg"));
  out.Text(TextOf(q.downsample, ""));
  out.Fixed(static_cast<uint8_t>(q.flags & kOnWire));
  out.Varint(q.filter_count + (by_host ? 1 : 0) + (by_task ? 1 : 0));
  for (size_t i = 0; i < q.filter_count; ++i) {
    const sonde_filter_t& f = q.filters[i];
    EncodeFilter(f.type, TextOf(f.key, ""), TextOf(f.value, ""), f.group_by != 0, out);
  }
  if (by_host) EncodeFilter("wildcard", "host", "*", true, out);
  if (by_task) EncodeFilter("wildcard", "task", "*", true, out);
  const int64_t now = WallNow();
  const double last = q.last_seconds * 1e9;
  int64_t start = q.start_ns;
  if (last > 0) start = last < static_cast<double>(now) ? now - static_cast<int64_t>(last) : 0;
  out.Signed(start);
  out.Signed(last > 0 || q.end_ns == 0 ? now : q.end_ns);
}

}  // namespace sonde::client
