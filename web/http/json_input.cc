#include "web/http/json_input.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "profiles/json/parse.h"

namespace sonde::web {

namespace json = boost::json;

Status Wrong(std::string_view key, std::string_view expected) {
  return {Code::kInvalid, fmt::format("{}: expected {}", key, expected)};
}

Status NoSuchField(std::string_view key, std::string_view known) {
  return {Code::kInvalid,
          fmt::format("there is no field '{}' here; expected {}", key.substr(0, 64), known)};
}

Result<json::value> ParseBody(std::string_view body, json::storage_ptr storage) {
  Result<json::value> value = ParseJson(body, "the body", std::move(storage));
  // For a file's reader kCorrupt means damage; a request's sender has to change the request.
  if (value.status().code() == Code::kCorrupt) {
    return Status(Code::kInvalid, std::string(value.status().message()));
  }
  return value;
}

Status ReadText(const json::value& value, std::string_view key, std::string& out, size_t limit) {
  const json::string* text = value.if_string();
  if (text == nullptr || text->size() > limit) {
    return Wrong(key, fmt::format("a text of at most {} bytes", limit));
  }
  out = View(*text);
  return {};
}

Status ReadBool(const json::value& value, std::string_view key, bool& out) {
  const json::string* text = value.if_string();
  const bool yes = text != nullptr && *text == "true";
  if (!value.is_bool() && !yes && (text == nullptr || *text != "false")) {
    return Wrong(key, "true or false");
  }
  out = value.is_bool() ? value.get_bool() : yes;
  return {};
}

Status ReadNumber(const json::value& value, std::string_view key, double& out) {
  if (const json::string* text = value.if_string()) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
    if (error == std::errc() && end == text->data() + text->size() && std::isfinite(out)) return {};
  } else if (value.is_number()) {
    out = value.to_number<double>();
    return {};
  }
  return Wrong(key, "a number");
}

Status ReadCount(const json::value& value, std::string_view key, uint64_t& out) {
  json::error_code error;
  out = value.is_int64() || value.is_uint64() ? value.to_number<uint64_t>(error) : 0;
  if (error || !(value.is_int64() || value.is_uint64())) return Wrong(key, "a whole number");
  return {};
}

}  // namespace sonde::web
