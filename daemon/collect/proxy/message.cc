#include "daemon/collect/proxy/message.h"

#include <optional>

#include "daemon/collect/proxy/json_reader.h"
#include "daemon/collect/read/parse.h"

namespace sonde::collect {
namespace {

using Kind = ProxyMessage::Kind;

struct Typed {
  std::optional<MetricType> type;  // none: of a later client library
  double value = kMissing;
};

bool ReadCounter(JsonReader& in, Typed& typed) {
  bool there = false;
  typed.type = MetricType::kCounter;
  return in.Object([&](std::string_view key) {
    if (key != "value") return in.Skip();
    there = true;
    return in.Number(typed.value);
  }) && there;
}

bool ReadGauge(JsonReader& in, Typed& typed) {
  std::optional<double> hits, total;
  typed.type = MetricType::kGauge;
  const bool read = in.Object([&](std::string_view key) {
    if (key == "hits") return in.Number(hits.emplace());
    if (key == "total") return in.Number(total.emplace());
    return in.Skip();
  });
  if (!read || !hits || !total) return false;
  typed.value = *hits > 0 ? *total / *hits : kMissing;
  return true;
}

bool ReadTyped(JsonReader& in, Typed& typed) {
  int members = 0;
  return in.Object([&](std::string_view key) {
    if (++members > 1) return false;
    if (key == "Counter") return ReadCounter(in, typed);
    if (key == "Gauge") return ReadGauge(in, typed);
    return in.Skip();
  }) && members == 1;
}

// Of both: `typed` is the name of the member that tells the type.
bool ReadNamed(JsonReader& in, Kind kind, std::string_view typed, ProxyMessage& message) {
  bool named = false, type_there = false;
  Typed found;
  const bool read = in.Object([&](std::string_view key) {
    if (key == "name") return named = true, in.String(message.name);
    if (key == "doc") return in.String(message.help);
    if (key == typed) return type_there = true, ReadTyped(in, found);
    return in.Skip();
  });
  if (!read || !named || !type_there) return false;
  if (!found.type) return true;
  message.kind = kind;
  message.type = *found.type;
  message.value = found.value;
  return true;
}

}  // namespace

Status DecodeProxyMessage(std::string_view bytes, ProxyMessage& message) {
  message.kind = Kind::kOther;
  message.name.clear();
  message.help.clear();
  JsonReader in(bytes);
  int members = 0;
  const bool read = in.Object([&](std::string_view key) {
    if (++members > 1) return false;
    if (key == "Desc") return ReadNamed(in, Kind::kMetric, "ctype", message);
    if (key == "Value") return ReadNamed(in, Kind::kValue, "value", message);
    return in.Skip();
  });
  if (read && members == 1 && in.AtEnd()) return {};
  return {Code::kCorrupt, "a message that is not metric-proxy's"};
}

}  // namespace sonde::collect
