// What stands in a request before an endpoint sees it: the head, bodies by length and in chunks,
// credentials, conditions, Last-Event-ID and what live events are asked for. The first byte
// chooses.
#include <boost/beast/http.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "web/http/gzip.h"
#include "web/http/negotiation.h"
#include "web/http/proof.h"
#include "web/live/live.h"
#include "web/server/auth.h"
#include "web/server/cors.h"
#include "web/server/proving.h"
#include "web/server/request_head.h"
#include "web/server/wire.h"

using namespace sonde;

namespace {

namespace http = boost::beast::http;

// As a connection does it: the head is checked, then parsed, then the body.
void ReadRequest(std::string_view bytes) {
  const size_t length = web::HeadLength(bytes);
  if (length == std::string_view::npos) return;
  if (web::CheckHead(bytes.substr(0, length))) return;
  http::request_parser<http::string_body> parser;
  parser.header_limit(8193);
  parser.body_limit(boost::none);
  boost::system::error_code error;
  size_t used = parser.put(boost::asio::buffer(bytes.data(), length), error);
  if (error || !parser.is_header_done()) return;
  // What was let through has one length.
  if (parser.chunked() && parser.get().count(http::field::content_length) != 0) abort();
  if (parser.get().count(http::field::content_length) > 1) abort();
  if (used != length) abort();
  web::Request request;
  if (!web::FromWire(parser.get(), request).ok()) return;
  if (request.path.find('\0') != std::string::npos) abort();
  parser.body_limit(4096);
  while (!parser.is_done() && used < bytes.size()) {
    const size_t more =
        parser.put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), error);
    if (error || more == 0) break;
    used += more;
  }
  if (parser.get().body().size() > 4096) abort();
}

void Proofs(std::string_view text, web::Request& request) {
  web::Proving proving;
  request.method = web::Method::kGet;
  const bool begun = proving.Begin("secret", "127.0.0.1:4242", request).status == 204;
  if (begun && web::ProofMember(text, "nonce")->size() != 64) abort();
  web::WireRequest wire(http::verb::get, "/", 11);
  wire.set(http::field::authorization, boost::beast::string_view(text.data(), text.size()));
  if (proving.Check("secret", wire).ok()) abort();
}

void Credentials(std::string_view text) {
  static const web::Auth auth("secret");
  static const web::Cors cors("https://a.example,*");
  web::Request request;
  request.path = "/";
  request.authorization = text;
  request.token = text;
  request.fetch_site = text;
  request.origin = text;
  (void)auth.Check(request);
  web::Response response = web::Auth::Refuse(request);
  cors.Mark(request, response);
  (void)web::ToWire(response, true);
  (void)web::Cors(text).IsPreflight(request);
  Proofs(text, request);
}

void Conditions(std::string_view text) {
  (void)web::WantsGzip(text);
  web::Request request;
  request.if_none_match = text;
  web::Response response;
  response.etag = "\"abcdef\"";
  response.last_modified = 1'800'000'000 * kSecond;
  (void)web::IsUnchanged(request, response);
  request.if_none_match.clear();
  request.if_modified_since = text;
  (void)web::IsUnchanged(request, response);
  const Nanos time = web::ParseHttpDate(text);
  if (time != 0 && web::ParseHttpDate(web::HttpDate(time)) != time) abort();
}

void Live(std::string_view text) {
  const Result<Nanos> id = web::ParseEventId(text);
  if (id.ok() && *id < 0) abort();
  web::Request request;
  if (web::ParseTarget(std::string("/api/live?").append(text), request).ok()) {
    request.last_event_id = text.substr(0, 20);
    (void)web::ParseLiveRequest(request);
    request.last_event_id.clear();
    const Result<web::LiveRequest> live = web::ParseLiveRequest(request);
    if (live.ok() && live->metrics.size() > web::kMaxLiveMetrics) abort();
  }
  const size_t half = text.size() / 2;
  (void)web::MatchesGlob(text.substr(0, half), text.substr(half));
  if (!web::MatchesGlob("*", text)) abort();
}

// What is packed unpacks, however it is cut.
void Pack(std::string_view text) {
  std::string packed;
  web::Gzip gzip;
  for (size_t at = 0; at < text.size(); at += 1 + at % 97) {
    gzip.Add(text.substr(at, 1 + at % 97), false, packed);
  }
  gzip.Add("", true, packed);
  const Result<std::string> back = web::Gunzip(packed, text.size());
  if (!back.ok() || *back != text) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      ReadRequest(text);
      break;
    case 1:
      Credentials(text);
      break;
    case 2:
      Conditions(text);
      break;
    case 3:
      Live(text);
      break;
    default:
      Pack(text);
  }
  return 0;
}
