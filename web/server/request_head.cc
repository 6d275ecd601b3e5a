#include "web/server/request_head.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/text/ascii.h"

namespace sonde::web {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

bool IsTokenChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

bool IsDigits(std::string_view text) {
  constexpr size_t kMost = 18;
  return !text.empty() && text.size() <= kMost &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool EqualsNoCase(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

// Fields with one value: a second one is an error.
constexpr std::array<std::string_view, 10> kSingle = {
    "host",          "content-length",   "transfer-encoding",
    "content-type",  "content-encoding", "expect",
    "authorization", "origin",           "last-event-id",
    "if-none-match"};
enum Field : size_t { kHost, kLength, kCoding, kType, kEncoding, kExpect };

struct Seen {
  std::array<bool, kSingle.size()> fields{};
  bool http_1_0 = false;
};

HeadFault Bad(std::string message) { return {400, std::move(message)}; }

std::optional<HeadFault> CheckRequestLine(std::string_view line, Seen& seen) {
  constexpr std::string_view kProtocol = "HTTP/";
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last || !IsToken(line.substr(0, first)) ||
      line.find(' ', first + 1) != last) {
    return Bad("this is no HTTP request: expected METHOD TARGET HTTP/1.1");
  }
  const std::string_view version = line.substr(last + 1);
  if (!version.starts_with(kProtocol)) return Bad("this is no HTTP request: expected HTTP/1.1");
  seen.http_1_0 = version == "HTTP/1.0";
  if (seen.http_1_0 || version == "HTTP/1.1") return std::nullopt;
  return HeadFault{505, "expected HTTP/1.1 or HTTP/1.0"};
}

std::optional<HeadFault> CheckValue(size_t field, std::string_view value) {
  if (field == kLength && !IsDigits(value)) return Bad("Content-Length: expected one number");
  if (field == kCoding && !EqualsNoCase(value, "chunked")) {
    return HeadFault{501, "Transfer-Encoding: only chunked is understood"};
  }
  if (field == kExpect && !EqualsNoCase(value, "100-continue")) {
    return HeadFault{417, "Expect: only 100-continue is understood"};
  }
  return std::nullopt;
}

std::optional<HeadFault> CheckField(std::string_view line, Seen& seen) {
  if (line[0] == ' ' || line[0] == '\t') return Bad("header lines must not be folded");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
    return Bad("a header line is not of the form 'Name: value'");
  }
  const std::string_view name = line.substr(0, colon);
  for (size_t i = 0; i < kSingle.size(); ++i) {
    if (!EqualsNoCase(name, kSingle[i])) continue;
    if (seen.fields[i]) return Bad(fmt::format("{} stands twice in the header", kSingle[i]));
    seen.fields[i] = true;
    return CheckValue(i, Trim(line.substr(colon + 1)));
  }
  return std::nullopt;
}

std::optional<HeadFault> CheckTogether(const Seen& seen) {
  if (!seen.fields[kHost] && !seen.http_1_0) return Bad("HTTP/1.1 needs the header Host");
  if (!seen.fields[kCoding]) return std::nullopt;
  if (seen.fields[kLength]) return Bad("Content-Length and Transfer-Encoding exclude each other");
  if (seen.http_1_0) return Bad("HTTP/1.0 has no Transfer-Encoding");
  return std::nullopt;
}

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

}  // namespace

size_t HeadLength(std::string_view bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  return end == std::string_view::npos ? end : end + 4;
}

std::optional<HeadFault> CheckHead(std::string_view head) {
  Seen seen;
  for (size_t number = 0; head != kLineEnd; ++number) {
    const size_t end = head.find(kLineEnd);
    if (end == std::string_view::npos) return Bad("the header does not end in an empty line");
    const std::string_view line = head.substr(0, end);
    if (std::any_of(line.begin(), line.end(), IsControl)) {
      return Bad("the header has control characters, or a line that does not end in CR LF");
    }
    if (number > kMaxHeaderLines) {
      return HeadFault{431, fmt::format("the header has more than {} lines", kMaxHeaderLines)};
    }
    if (line.empty()) return Bad("this is no HTTP request: expected METHOD TARGET HTTP/1.1");
    auto fault = number == 0 ? CheckRequestLine(line, seen) : CheckField(line, seen);
    if (fault) return fault;
    head.remove_prefix(end + kLineEnd.size());
  }
  return CheckTogether(seen);
}

}  // namespace sonde::web
