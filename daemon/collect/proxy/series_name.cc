#include "daemon/collect/proxy/series_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/ascii.h"
#include "core/text/hash.h"
#include "core/text/names.h"
#include "core/text/printable.h"

namespace sonde::collect {
namespace {

struct Label {
  std::string key;
  std::string value;
};

bool IsTaken(std::string_view key) {
  return key == "task" || key == "host" || key == "job" || key == "stat" || key == kProxyNameTag;
}

std::string AsName(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool allowed =
        names::IsLetter(c) || names::IsDigit(c) || c == ':' || c == '.' || c == '-';
    name += allowed ? c : '_';
  }
  if (name.empty() || (!names::IsLetter(name[0]) && name[0] != ':')) name.insert(0, "_");
  name.resize(std::min(name.size(), kMaxNameLength));
  return name;
}

std::string AsKey(std::string_view text) {
  std::string key = IsTaken(text) ? "exported_" : "";
  for (const char c : text) key += names::IsLetter(c) || names::IsDigit(c) ? c : '_';
  if (key.empty() || names::IsDigit(key[0])) key.insert(0, "_");
  key.resize(std::min(key.size(), kMaxNameLength));
  return key;
}

std::string AsValue(std::string_view text) {
  return std::string(names::Beginning(Printable(text), kMaxNameLength));
}

// The text of a label's value up to its closing quote, which is left in `rest`; nothing if there is
// none.
std::optional<std::string> ReadValue(std::string_view& rest) {
  std::string value;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '"') return rest.remove_prefix(i), value;
    const bool escape = rest[i] == '\\' && i + 1 < rest.size();
    if (escape && (rest[i + 1] == '"' || rest[i + 1] == '\\')) ++i;
    value += rest[i];
  }
  return std::nullopt;
}

// The labels between the braces; nothing if these are not labels.
std::optional<std::vector<Label>> ReadLabels(std::string_view rest) {
  std::vector<Label> labels;
  for (rest = Trim(rest); !rest.empty();) {
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    Label label{std::string(Trim(rest.substr(0, equals))), ""};
    rest = Trim(rest.substr(equals + 1));
    if (!rest.starts_with('"')) return std::nullopt;
    rest.remove_prefix(1);
    std::optional<std::string> value = ReadValue(rest);
    if (!value) return std::nullopt;
    label.value = *std::move(value);
    labels.push_back(std::move(label));
    rest = Trim(rest.substr(1));
    if (rest.empty()) break;
    if (!rest.starts_with(',')) return std::nullopt;
    rest = Trim(rest.substr(1));
  }
  return labels;
}

// Adds the labels as tags; false if these do not say the same.
bool AddLabels(const std::vector<Label>& labels, Tags& tags) {
  bool same = true;
  for (const Label& label : labels) {
    if (label.value.empty()) continue;  // to Prometheus the same as no label
    const std::string key = AsKey(label.key), value = AsValue(label.value);
    same = same && key == label.key && value == label.value && tags.Find(key) == nullptr;
    tags.Set(key, value);
  }
  return same;
}

std::string Told(std::string_view text) {
  if (names::IsTagValue(text)) return std::string(text);
  const std::string hash = fmt::format("#{:016x}", Fnv1a64(text));
  return std::string(names::Beginning(Printable(text), kMaxNameLength - hash.size())) + hash;
}

}  // namespace

Series ProxySeries(std::string_view text) {
  Series series;
  const size_t brace = std::min(text.find('{'), text.size());
  std::string_view name = text.substr(0, brace);
  bool same = true;
  if (brace < text.size()) {
    const bool closed = text.back() == '}';
    const auto labels = closed ? ReadLabels(text.substr(brace + 1, text.size() - brace - 2))
                               : std::optional<std::vector<Label>>();
    if (!labels) name = text;
    // A backslash can be meant in two ways.
    same = labels && AddLabels(*labels, series.tags) && text.find('\\') == std::string_view::npos;
  }
  series.metric.name = AsName(name);
  same = same && series.metric.name == name;
  if (same && series.tags.pairs().size() <= kMostProxyTags) return series;
  while (series.tags.pairs().size() >= kMostProxyTags) {
    series.tags.Erase(std::string(series.tags.pairs().back().first));
  }
  series.tags.Set(kProxyNameTag, Told(text));
  return series;
}

}  // namespace sonde::collect
