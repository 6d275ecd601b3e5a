#include "web/http/http.h"

#include <fmt/core.h>

#include <charconv>

#include "core/text/names.h"
#include "profiles/json/writer.h"

namespace sonde::web {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// `plus` is a blank in a query, and itself in a path.
bool Decode(std::string_view text, bool plus_is_blank, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (i + 2 >= text.size()) return false;
      const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0 || (high == 0 && low == 0)) return false;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return true;
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = names::Utf8Length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

int HttpStatus(Code code) {
  switch (code) {
    case Code::kInvalid:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kPermission:
      return 403;
    case Code::kLimit:
      return 413;
    case Code::kUnavailable:
    case Code::kBusy:
      return 503;
    case Code::kTimeout:
      return 504;
    case Code::kUnsupported:
      return 501;
    default:
      return 500;
  }
}

}  // namespace

const std::string* Request::Param(std::string_view name) const {
  for (const auto& [key, value] : params) {
    if (key == name) return &value;
  }
  return nullptr;
}

Status ParseTarget(std::string_view target, Request& request) {
  request.target = target;
  if (target.empty() || target[0] != '/') {
    return {Code::kInvalid, "the request target must be a path that starts with '/'"};
  }
  const size_t mark = target.find('?');
  if (!Decode(target.substr(0, mark), false, request.path)) {
    return {Code::kInvalid, "the path has a wrong % escape"};
  }
  if (!IsUtf8(request.path)) return {Code::kInvalid, "the path is not UTF-8"};
  std::string_view query = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  query = query.substr(0, query.find('#'));
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? "" : query.substr(end + 1);
    if (pair.empty()) continue;
    if (request.params.size() == kMaxParams) {
      return {Code::kInvalid, fmt::format("more than {} parameters", kMaxParams)};
    }
    const size_t eq = pair.find('=');
    std::string key, value;
    if (!Decode(pair.substr(0, eq), true, key) ||
        (eq != std::string_view::npos && !Decode(pair.substr(eq + 1), true, value))) {
      return {Code::kInvalid, "a parameter has a wrong % escape"};
    }
    if (!IsUtf8(key) || !IsUtf8(value)) return {Code::kInvalid, "a parameter is not UTF-8"};
    request.params.emplace_back(std::move(key), std::move(value));
  }
  return {};
}

std::string_view Shortened(std::string_view message) {
  constexpr size_t kMost = 2000;
  return names::Beginning(message, kMost);
}

Response ErrorResponse(int status, std::string_view message, std::string_view details) {
  Response response;
  response.status = status;
  JsonWriter json(response.body);
  json.BeginObject().Key("error").BeginObject();
  json.Field("code", status).Field("message", Shortened(message));
  if (!details.empty()) json.Field("details", details);
  json.EndObject().EndObject();
  return response;
}

Response TooMuchResponse(size_t count, size_t limit, std::string_view things,
                         std::string_view advice) {
  Response response;
  response.status = 413;
  JsonWriter json(response.body);
  json.BeginObject().Key("error").BeginObject();
  json.Field("code", response.status);
  json.Field("message",
             fmt::format("the answer has {} {}, more than {}: {}", count, things, limit, advice));
  json.Field("count", count).Field("limit", limit);
  json.EndObject().EndObject();
  return response;
}

Response ErrorResponse(const Status& status) {
  return ErrorResponse(HttpStatus(status.code()), status.message());
}

Response JsonResponse(Result<std::string> json) {
  if (!json.ok()) return ErrorResponse(json.status());
  Response response;
  response.body = *std::move(json);
  return response;
}

Result<bool> FlagParam(const Request& request, std::string_view name) {
  const std::string* text = request.Param(name);
  if (text == nullptr || *text == "false") return false;
  if (text->empty() || *text == "true") return true;
  return Status(Code::kInvalid, fmt::format("parameter {}: expected true or false", name));
}

Result<uint64_t> NumberParam(const Request& request, std::string_view name, uint64_t fallback,
                             uint64_t low, uint64_t high) {
  const std::string* text = request.Param(name);
  if (text == nullptr || text->empty()) return fallback;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < low || value > high) {
    return Status(Code::kInvalid, fmt::format("parameter {}: expected a whole number from {} to {}",
                                              name, low, high));
  }
  return value;
}

}  // namespace sonde::web
