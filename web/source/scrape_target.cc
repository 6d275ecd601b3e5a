#include "web/source/scrape_target.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "core/text/names.h"

namespace sonde::web {
namespace {

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), names::IsDigit) &&
         std::stoul(std::string(text)) - 1 < 65535;
}

bool IsHost(std::string_view text) {
  return !text.empty() && text.size() <= 255 && std::all_of(text.begin(), text.end(), [](char c) {
    return names::IsLetter(c) || names::IsDigit(c) || c == '.' || c == '-' || c == ':' || c == '%';
  });
}

bool IsPath(std::string_view text) {
  return text.size() <= 2048 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

Status Expected(std::string_view text) {
  return {Code::kInvalid,
          fmt::format("'{}' is no exporter: expected HOST:PORT or HOST:PORT/path, as in "
                      "localhost:9100/metrics",
                      text)};
}

}  // namespace

std::string ScrapeTarget::Instance() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

std::string ScrapeTarget::Url() const { return fmt::format("http://{}{}", Instance(), path); }

Result<ScrapeTarget> ParseScrapeTarget(std::string_view text) {
  if (text.starts_with("https://")) {
    return Status(Code::kUnsupported,
                  fmt::format("'{}': exporters are scraped over http only", text));
  }
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = text;
  ScrapeTarget target;
  if (rest.starts_with(kScheme)) {
    rest.remove_prefix(kScheme.size());
    target.port = "80";
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  target.path = slash == rest.size() ? "/metrics" : rest.substr(slash);
  rest = rest.substr(0, slash);
  size_t host_end = rest.rfind(':');
  if (rest.starts_with('[')) {
    const size_t bracket = rest.find(']');
    if (bracket == std::string_view::npos) return Expected(text);
    target.host = rest.substr(1, bracket - 1);
    host_end = bracket + 1 < rest.size() ? bracket + 1 : std::string_view::npos;
    if (host_end != std::string_view::npos && rest[host_end] != ':') return Expected(text);
  } else {
    target.host = rest.substr(0, std::min(host_end, rest.size()));
    if (target.host.find(':') != std::string::npos) return Expected(text);
  }
  if (host_end != std::string_view::npos) target.port = rest.substr(host_end + 1);
  if (!IsHost(target.host) || !IsPort(target.port) || !IsPath(target.path)) return Expected(text);
  return target;
}

Result<Nanos> ParseScrapePeriod(std::string_view text) {
  const bool bare = !text.empty() && std::all_of(text.begin(), text.end(), names::IsDigit);
  const Result<Nanos> period = ParseDuration(std::string(text) + (bare ? "ms" : ""));
  if (period.ok() && *period >= kMinScrapePeriod && *period <= kMaxScrapePeriod) return period;
  return Status(
      Code::kInvalid,
      fmt::format("'{}' is no period of scrapes: expected a time from 100ms to 1h, such as "
                  "5s or 500 (milliseconds)",
                  text));
}

std::string EncodeScrape(const ScrapeTarget& target) {
  return fmt::format("{} {}", target.Url(), target.every / kMillisecond);
}

Result<ScrapeTarget> DecodeScrape(std::string_view text) {
  const size_t blank = text.find(' ');
  const Status damaged(Code::kCorrupt, "a target to scrape is damaged");
  if (blank == std::string_view::npos) return damaged;
  const char* end = text.data() + text.size();
  int64_t period = 0;
  const auto read = std::from_chars(text.data() + blank + 1, end, period);
  if (read.ec != std::errc() || read.ptr != end) return damaged;
  if (period < kMinScrapePeriod / kMillisecond || period > kMaxScrapePeriod / kMillisecond) {
    return damaged;
  }
  Result<ScrapeTarget> target = ParseScrapeTarget(text.substr(0, blank));
  if (!target.ok()) return damaged;
  target->every = period * kMillisecond;
  return target;
}

}  // namespace sonde::web
