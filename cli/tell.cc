#include "cli/tell.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>

#include "cli/command.h"
#include "core/metric.h"
#include "libclient/sonde.h"

namespace sonde::cli {
namespace {

Status Expected(std::string_view form, std::string_view text) {
  return {Code::kInvalid, fmt::format("'{}': expected {}", text, form)};
}

}  // namespace

Result<std::pair<std::string, double>> ParseAssignment(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return Expected("NAME=VALUE", text);
  std::pair<std::string, double> result(text.substr(0, equals), 0);
  SONDE_RETURN_IF_ERROR(CheckMetricName(result.first));
  const std::string value(text.substr(equals + 1));
  char* end = nullptr;
  result.second = std::strtod(value.c_str(), &end);
  const bool whole = !value.empty() && static_cast<unsigned char>(value[0]) > ' ' && *end == '\0';
  if (!whole || !std::isfinite(result.second)) return Expected("a number after the '='", text);
  return result;
}

Result<std::pair<std::string, std::string>> ParseTag(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return Expected("KEY=VALUE", text);
  std::pair<std::string, std::string> tag(text.substr(0, equals), text.substr(equals + 1));
  SONDE_RETURN_IF_ERROR(CheckTag(tag.first, tag.second));
  if (tag.first == "task")
    return Expected("another key: every series has the rank as 'task'", text);
  return tag;
}

Status CheckUnit(std::string_view unit) {
  if (unit.size() <= kMaxNameLength && names::IsPlainText(unit)) return {};
  return Expected(
      fmt::format("a unit such as seconds, bytes or 1, at most {} bytes of text", kMaxNameLength),
      unit.substr(0, 64));
}

int Told(std::string_view what, int code, bool strict) {
  if (code == SONDE_OK || !strict) return kDone;
  Note(fmt::format("{} is not recorded: {}", what, sonde_error()));
  return code == SONDE_OFF || code == SONDE_LEVEL ? kNotFound : kFailed;
}

}  // namespace sonde::cli
