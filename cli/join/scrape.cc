#include "cli/join/scrape.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/beast/http.hpp>

#include "cli/join/proxy_snapshot.h"
#include "serve/http_client.h"

namespace sonde::join {
namespace {

namespace http = boost::beast::http;

constexpr char kAccept[] =
    "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

constexpr char kOfExporters[] = "/metrics";
constexpr char kOfProxies[] = "/job?job=main";
constexpr char kProxysPage[] = "/is_admire_proxy.html";
constexpr size_t kMaxPage = 64u << 10;

// Whatever its status. A failure is that of scraping `target`, though another path of it was asked.
Result<serve::HttpResponse> Ask(const web::ScrapeTarget& target, const char* path, Nanos timeout,
                                size_t max_bytes) {
  serve::HttpRequest ask(http::verb::get, path, 11);
  ask.set(http::field::accept, kAccept);
  return serve::HttpExchange(
      {target.host, target.port, std::move(ask), "scrape " + target.Url(), timeout, max_bytes});
}

Result<std::string> Get(const web::ScrapeTarget& target, Nanos timeout, size_t max_bytes) {
  Result<serve::HttpResponse> answer = Ask(target, target.path.c_str(), timeout, max_bytes);
  if (!answer.ok()) return answer.status();
  if (answer->result() != http::status::ok) {
    return Status(Code::kUnavailable,
                  fmt::format("scrape {}: it answers {} {}", target.Url(), answer->result_int(),
                              std::string_view(answer->reason())));
  }
  return std::move(answer->body());
}

}  // namespace

std::string_view ToString(Kind kind) { return kind == Kind::kProxy ? "Proxy" : "Prometheus"; }

Result<Scraped> Scrape(const web::ScrapeTarget& target, Nanos timeout, size_t max_bytes) {
  Result<std::string> text = Get(target, timeout, max_bytes);
  if (!text.ok()) return text.status();
  if (!IsSnapshot(*text)) return Scraped{Kind::kPrometheus, *std::move(text)};
  Result<std::string> made = ExpositionOf(*text);
  if (!made.ok()) return made.status().Within("scrape " + target.Url());
  return Scraped{Kind::kProxy, *std::move(made)};
}

Result<Found> Find(const web::ScrapeTarget& target, const FirstLimits& limits) {
  const Nanos end = Clock::System().Monotonic() + limits.together;
  const auto left = [&] {
    return std::clamp<Nanos>(end - Clock::System().Monotonic(), 0, limits.each);
  };
  Status unheard;
  if (target.path == kOfExporters) {
    const Result<serve::HttpResponse> page = Ask(target, kProxysPage, left(), kMaxPage);
    if (page.status().code() == Code::kTimeout) return page.status();
    if (!page.ok()) unheard = page.status();
    if (page.ok() && page->result() == http::status::ok) {
      web::ScrapeTarget proxy = target;
      proxy.path = kOfProxies;
      Result<Scraped> main = Scrape(proxy, left(), limits.max_bytes);
      if (main.ok() && main->kind == Kind::kProxy) return Found{proxy, *std::move(main)};
      if (!main.ok() && left() == 0) return main.status();
    }
  }
  Result<Scraped> scraped = Scrape(target, left(), limits.max_bytes);
  if (scraped.ok()) return Found{target, *std::move(scraped)};
  // What failed first took the time.
  if (scraped.status().code() == Code::kTimeout && !unheard.ok()) return unheard;
  return scraped.status();
}

}  // namespace sonde::join
