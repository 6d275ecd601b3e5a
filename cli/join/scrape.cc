#include "cli/join/scrape.h"

#include <fmt/core.h>

#include <boost/beast/http.hpp>

#include "serve/http_client.h"

namespace sonde::join {
namespace {

namespace http = boost::beast::http;

constexpr char kAccept[] =
    "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

}  // namespace

Result<std::string> Scrape(const web::ScrapeTarget& target, Nanos timeout, size_t max_bytes) {
  serve::HttpRequest ask(http::verb::get, target.path, 11);
  ask.set(http::field::accept, kAccept);
  const std::string what = "scrape " + target.Url();
  Result<serve::HttpResponse> answer =
      serve::HttpExchange(target.host, target.port, std::move(ask), what, timeout, max_bytes);
  if (!answer.ok()) return answer.status();
  if (answer->result() != http::status::ok) {
    return Status(Code::kUnavailable,
                  fmt::format("{}: it answers {} {}", what, answer->result_int(),
                              std::string_view(answer->reason())));
  }
  return std::move(answer->body());
}

}  // namespace sonde::join
