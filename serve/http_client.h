// HTTP requests and their responses, each on a connection of its own.
//
// Thread safety: functions without state; HttpClient as it says.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"

namespace sonde::serve {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using HttpResponse = boost::beast::http::response<boost::beast::http::string_body>;

class Turns;

// A request, its destination and its limits.
struct HttpQuestion {
  std::string host;
  std::string port;
  HttpRequest request;
  std::string what;  // begins the message of a failure, as in "ask the head at n1:4242"
  Nanos timeout = 0;
  uint64_t max_body = 0;
  std::shared_ptr<Turns> turns = nullptr;  // if set, the body is read when its turn comes
  // The peer waits for others before it answers: that it is late says nothing of other requests.
  bool waits_for_others = false;
  // If set, the request is sent only to who proves that he knows it, with the proof that we do: the
  // token itself is not sent (web/http/proof.h).
  std::string token = {};
};

// Gives the response, whatever its status. kTimeout, kUnavailable (no answer, or only a part of
// one), kLimit (a body of more than `max_body` bytes), kCorrupt (not HTTP) or kPermission: who
// listens there does not know the token.
Result<HttpResponse> HttpExchange(HttpQuestion question);

struct HttpAnswer {
  HttpResponse response;
  std::shared_ptr<void> turn;  // the turn lasts as long as this
};

// The same without waiting. Up to 256 requests are under way at a time, 16 of them to one peer, on
// one thread; the others begin when these end. Only the time that its peer takes counts for a
// request, not the time that it waits for other requests.
//
// Thread safety: Exchange and NewTurns from any thread; made and destroyed by one. Callbacks run on
// the client's thread, each once, with the answer or when the time is over. The destructor drops
// the callbacks of requests under way.
class HttpClient {
 public:
  using Callback = std::function<void(Result<HttpAnswer>)>;

  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void Exchange(HttpQuestion question, Callback callback) const;
  // For requests of which only so many answers are held at a time.
  std::shared_ptr<Turns> NewTurns(size_t most) const;

 private:
  struct Core;
  const std::unique_ptr<Core> core_;
};

// Among requests that belong together only so many have a turn at a time.
//
// Thread safety: Close from any thread.
class Turns {
 public:
  virtual ~Turns() = default;
  // Gives no more turns: kBusy.
  virtual void Close() = 0;
};

}  // namespace sonde::serve
