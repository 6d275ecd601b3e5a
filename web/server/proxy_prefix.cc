#include "web/server/proxy_prefix.h"

#include <algorithm>

namespace sonde::web {
namespace {

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Prefix {
  std::string_view before;  // the host, or the port
  bool has_host;            // a part of its own before the port
};
constexpr Prefix kPrefixes[] = {
    {"/absproxy/", false}, {"/proxy/absolute/", false}, {"/node/", true}};

}  // namespace

std::string_view WithoutProxyPrefix(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  for (const Prefix& prefix : kPrefixes) {
    size_t at = path.find(prefix.before);
    if (at == std::string_view::npos) continue;
    at += prefix.before.size();
    if (prefix.has_host) {
      at = path.find('/', at);
      if (at == std::string_view::npos) continue;
      ++at;
    }
    const size_t end = path.find('/', at);
    if (end == std::string_view::npos) continue;
    // jupyter-server-proxy may have HOST:PORT there.
    const std::string_view where = path.substr(at, end - at);
    if (IsPort(where.substr(where.rfind(':') + 1))) return target.substr(end);
  }
  return target;
}

}  // namespace sonde::web
