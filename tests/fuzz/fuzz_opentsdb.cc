// What OpenTSDB's clients send: m= expressions, whole query strings, downsamples, filters, bodies
// of puts and annotations and of every other path, packed bodies, and what a small store then
// answers. The first byte chooses.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "web/http/gzip.h"
#include "web/opentsdb/put_store.h"
#include "web/opentsdb/request.h"
#include "web/router.h"

using namespace sonde;

namespace {

constexpr Nanos kNow = 1'800'000'000 * kSecond;

// A store that lasts: a few points, and whatever is put.
web::Response Call(web::Method method, std::string_view target, std::string_view body,
                   std::string_view encoding) {
  static const auto store = [] {
    auto made = std::make_shared<web::PutStore>();
    for (int i = 0; i < 50; ++i) {
      const bool whole = i % 3 != 0;
      (void)made->sink()->Put({"m",
                               {{"host", i % 2 == 0 ? "a" : "B"}, {"dc", "x"}},
                               kNow - i * 7 * kSecond,
                               whole ? i : i + 0.5,
                               whole});
    }
    return made;
  }();
  web::Request request;
  web::Response answer;
  if (!web::ParseTarget(target, request).ok()) return answer;
  request.method = method;
  request.content_type = "application/json";
  request.content_encoding = encoding;
  request.body = body;
  class Fixed : public Clock {
   public:
    Nanos Now() const override { return kNow; }
    Nanos Monotonic() const override { return kNow; }
  } clock;
  web::Dispatch(web::Context(*store, &clock, nullptr), request,
                [&](web::Response response) { answer = std::move(response); });
  while (answer.next && answer.next(answer.body)) {
  }
  // Whatever comes in, the answer is one of these, and never a bug of ours.
  if (answer.status == 500) abort();
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      (void)web::ParseQueryExpression(text);
      break;
    case 1: {
      std::string m = "sum:m{";
      m.append(text).append("}");
      (void)web::ParseQueryExpression(m);
      (void)ParseDownsample(text);
      break;
    }
    case 2:
      (void)Call(web::Method::kGet, std::string("/api/query?").append(text), "", "");
      break;
    case 3:
      for (const char* path : {"/api/query", "/api/suggest", "/api/search/lookup",
                               "/api/annotation/bulk", "/alarms/add", "/alarms/del", "/set",
                               "/trace/plot", "/api/v1/counters", "/api/v1/part"}) {
        (void)Call(web::Method::kPost, path, text, "");
      }
      for (const char* path : {"/api/v1/tags?job=1.0", "/api/annotation", "/api/annotation/bulk"}) {
        (void)Call(web::Method::kPut, path, text, "");
      }
      break;
    case 4:
      (void)web::PutBody(text, true, [](web::PutPoint) { return Status(); });
      break;
    case 5:
      (void)web::ParseAnnotationBody(text, kNow);
      break;
    default:
      (void)web::Gunzip(text, 1 << 16);
  }
  return 0;
}
