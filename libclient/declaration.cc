#include "libclient/declaration.h"

#include "libclient/error.h"

namespace sonde::client {
namespace {

bool InName(char c) {
  return names::IsLetter(c) || names::IsDigit(c) || c == ':' || c == '.' || c == '-';
}

int CheckTagKey(std::string_view metric, std::string_view key) {
  if (key == kTaskTag) {
    return Fail(SONDE_INVALID, "the tag 'task' of metric '%s' is taken: it is the rank",
                Quoted(metric).c_str());
  }
  if (names::IsTagKey(key)) return SONDE_OK;
  const Quoted in(metric), quoted(key);
  if (key.size() > kMaxNameLength) {
    return Fail(SONDE_INVALID, "the tag '%s' of metric '%s' has %zu bytes; %zu are allowed",
                quoted.c_str(), in.c_str(), key.size(), kMaxNameLength);
  }
  return Fail(SONDE_INVALID,
              "the tag '%s' of metric '%s' is not letters, digits and '_' from a letter or '_' on",
              quoted.c_str(), in.c_str());
}

int CheckTagValue(std::string_view metric, std::string_view key, std::string_view value) {
  if (names::IsTagValue(value)) return SONDE_OK;
  const Quoted in(metric), of(key), quoted(value);
  if (value.empty()) {
    return Fail(SONDE_INVALID, "the tag '%s' of metric '%s' has no value", of.c_str(), in.c_str());
  }
  if (value.size() > kMaxNameLength) {
    return Fail(SONDE_INVALID,
                "the value of tag '%s' of metric '%s' has %zu bytes; %zu are allowed", of.c_str(),
                in.c_str(), value.size(), kMaxNameLength);
  }
  return Fail(SONDE_INVALID,
              "the value '%s' of tag '%s' of metric '%s' is not UTF-8 without control characters",
              quoted.c_str(), of.c_str(), in.c_str());
}

// Plain text that may be empty.
int CheckOptional(const char* what, std::string_view metric, std::string_view text, size_t limit) {
  if (text.size() <= limit && names::IsPlainText(text)) return SONDE_OK;
  const Quoted in(metric), quoted(text);
  if (text.size() > limit) {
    return Fail(SONDE_INVALID, "the %s of '%s' has %zu bytes; %zu are allowed", what, in.c_str(),
                text.size(), limit);
  }
  return Fail(SONDE_INVALID, "the %s '%s' of '%s' is not UTF-8 without control characters", what,
              quoted.c_str(), in.c_str());
}

}  // namespace

const char* TypeName(uint8_t type) {
  return type == kTypeGauge ? "gauge" : type == kTypeCounter ? "counter" : "histogram";
}

int SortedTags::Insert(std::string_view metric, std::string_view key, std::string_view value) {
  if (const int code = CheckTagKey(metric, key); code != SONDE_OK) return code;
  if (const int code = CheckTagValue(metric, key, value); code != SONDE_OK) return code;
  size_t at = count;
  while (at > 0 && keys[at - 1] > key) --at;
  if (at > 0 && keys[at - 1] == key) {
    return Fail(SONDE_INVALID, "the tag '%s' of metric '%s' is there twice", Quoted(key).c_str(),
                Quoted(metric).c_str());
  }
  for (size_t i = count; i > at; --i) {
    keys[i] = keys[i - 1];
    values[i] = values[i - 1];
  }
  keys[at] = key;
  values[at] = value;
  ++count;
  return SONDE_OK;
}

int CheckName(const char* what, std::string_view name, size_t limit) {
  if (name.empty()) return Fail(SONDE_INVALID, "a %s without a name", what);
  if (name.size() <= limit && names::IsMetricName(name)) return SONDE_OK;
  const Quoted quoted(name);
  if (name.size() > limit) {
    return Fail(SONDE_INVALID, "the name '%s' of a %s has %zu bytes; %zu are allowed",
                quoted.c_str(), what, name.size(), limit);
  }
  size_t bad = 0;
  while (bad < name.size() && InName(name[bad])) ++bad;
  if (bad == name.size()) {
    return Fail(SONDE_INVALID, "the name '%s' of a %s does not begin with a letter, '_' or ':'",
                quoted.c_str(), what);
  }
  const size_t n = names::Utf8Length(name, bad);
  return Fail(SONDE_INVALID,
              "the name '%s' of a %s has '%s' in it; letters, digits, '_', ':', '.' and '-' are "
              "allowed",
              quoted.c_str(), what, Quoted({name.data() + bad, n == 0 ? 1 : n}).c_str());
}

int CheckUnit(std::string_view metric, std::string_view unit) {
  return CheckOptional("unit", metric, unit, kMaxNameLength);
}

int CheckText(const char* what, std::string_view text, size_t limit) {
  if (text.empty()) return Fail(SONDE_INVALID, "a %s without a text", what);
  if (text.size() > limit) {
    return Fail(SONDE_INVALID, "the %s '%s' has %zu bytes; %zu are allowed", what,
                Quoted(text).c_str(), text.size(), limit);
  }
  if (names::IsPlainText(text)) return SONDE_OK;
  return Fail(SONDE_INVALID, "the %s '%s' is not UTF-8 without control characters", what,
              Quoted(text).c_str());
}

int CheckDeclaration(const Declaration& d) {
  const std::string_view name = Text(d.name);
  const size_t limit = d.type == kTypeHistogram ? kMaxHistogramName : kMaxNameLength;
  int code = CheckName(TypeName(d.type), name, limit);
  if (code == SONDE_OK) code = CheckUnit(name, Text(d.unit));
  if (code == SONDE_OK) code = CheckOptional("help", name, Text(d.help), kMaxTextLength);
  if (code == SONDE_OK && (d.level < 0 || d.level > 4)) {
    code = Fail(SONDE_INVALID, "the level %d of metric '%s' is not one of 1 to 4, or 0 for 1",
                d.level, Quoted(name).c_str());
  }
  return code;
}

int SortTags(const Declaration& d, SortedTags* sorted) {
  const std::string_view name = Text(d.name);
  if (d.tag_count > kMaxAppTags) {
    return Fail(SONDE_INVALID, "the metric '%s' has %zu tags; %zu are allowed",
                Quoted(name).c_str(), d.tag_count, kMaxAppTags);
  }
  if (d.tag_count > 0 && d.tags == nullptr) {
    return Fail(SONDE_INVALID, "the metric '%s' has %zu tags, and they are NULL",
                Quoted(name).c_str(), d.tag_count);
  }
  for (size_t i = 0; i < d.tag_count; ++i) {
    const int code = sorted->Insert(name, Text(d.tags[i].key), Text(d.tags[i].value));
    if (code != SONDE_OK) return code;
  }
  return SONDE_OK;
}

}  // namespace sonde::client
