// What crosses the socket for questions, both ways: a process's requests as the node's daemon takes
// them apart, the head's answers as libsonde does, and the text of a condition. The first byte
// chooses.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "core/metric.h"
#include "daemon/node/ask/ask_request.h"
#include "libclient/ask/answer.h"
#include "libclient/ask/condition.h"

namespace {

using namespace sonde;

// What is a question must go up the tree and come out as the same.
void TryQuery(const Result<QuerySpec>& spec) {
  if (!spec.ok()) return;
  std::string bytes, again;
  EncodeQuery(*spec, bytes);
  const Result<QuerySpec> decoded = DecodeQuery(bytes);
  if (!decoded.ok()) std::abort();
  EncodeQuery(*decoded, again);
  if (again != bytes) std::abort();
}

size_t Length(const char* text) { return text == nullptr ? 0 : std::strlen(text); }

// Touches everything that a program may.
size_t Read(const sonde_tag_t* tags, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += Length(tags[i].key) + Length(tags[i].value);
  return sum;
}

void TryResult(std::string_view bytes) {
  sonde_result_t* const result = client::DecodeResult(bytes);
  if (result == nullptr) return;
  size_t sum = 0;
  for (size_t i = 0; i < result->series_count; ++i) {
    const sonde_series_t& s = result->series[i];
    sum += Length(s.metric) + Read(s.tags, s.tag_count);
    for (size_t k = 0; k < s.aggregated_count; ++k) sum += Length(s.aggregated[k]);
    for (size_t p = 0; p < s.point_count; ++p) sum += s.points[p].time_ns == 0 ? 1 : 0;
    (void)sonde_series_tag(&s, "host");
  }
  std::free(result);
  if (sum > 32 * bytes.size()) std::abort();
}

void TryList(std::string_view bytes) {
  sonde_list_t* const list = client::DecodeList(bytes);
  if (list == nullptr) return;
  size_t sum = 0;
  for (size_t i = 0; i < list->metric_count; ++i) {
    const sonde_metric_info_t& m = list->metrics[i];
    sum += Length(m.name) + Length(m.unit) + Length(m.help) + Length(m.type);
    sum += Read(m.tags, m.tag_count);
  }
  std::free(list);
  if (sum > 32 * bytes.size()) std::abort();
}

void TryCondition(std::string_view bytes) {
  const std::string text(bytes);
  const auto parsed = std::make_unique<client::ParsedCondition>();
  char why[256] = "";
  if (!client::ParseCondition(text.c_str(), parsed.get(), why, sizeof(why))) {
    if (std::strstr(why, "expected") == nullptr) std::abort();
    return;
  }
  const sonde_question_t& of = parsed->condition.of;
  if (!CheckMetricName(of.metric).ok()) std::abort();
  for (size_t i = 0; i < of.filter_count; ++i) {
    if (!names::IsTagKey(of.filters[i].key) || Length(of.filters[i].value) == 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      (void)node::CheckAskHello(bytes);
      break;
    case 1:
      TryQuery(node::DecodeAskQuery(bytes));
      break;
    case 2:
      TryQuery(node::DecodeAskSubscription(bytes));
      break;
    case 3:
      (void)node::DecodeAskList(bytes);
      break;
    case 4:
      TryResult(bytes);
      break;
    case 5:
      TryList(bytes);
      break;
    default:
      TryCondition(bytes);
  }
  return 0;
}
