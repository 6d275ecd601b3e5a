#include "serve/site/door.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <utility>

#include "core/log.h"
#include "profiles/json/writer.h"
#include "web/pages/pages.h"
#include "web/server/auth.h"
#include "web/server/request_head.h"
#include "web/server/wire_text.h"

namespace sonde::site {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;

constexpr std::chrono::milliseconds kAcceptPause(100);
constexpr std::chrono::seconds kLeaving(2);
constexpr Nanos kRemarkAgain = 600 * kSecond;
constexpr size_t kMaxRemarked = 1024;

int FamilyOf(int fd) {
  int family = AF_UNSPEC;
  socklen_t size = sizeof(family);
  getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
  return family;
}

// The user at the other end of a Unix socket, at the time of its connect.
std::optional<uid_t> PeerOf(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (FamilyOf(fd) != AF_UNIX || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return std::nullopt;
  }
  return peer.uid;
}

int StatusOf(const Status& refusal) {
  switch (refusal.code()) {
    case Code::kNotFound:
      return 404;
    case Code::kPermission:
      return 403;
    default:
      return 503;
  }
}

constexpr std::string_view kNoToken =
    "this needs your token, for who connects here by a tunnel is not known: on the server's host "
    "'sonde url --site' prints the address for a browser, and 'sonde url --site --token' the token "
    "for the header 'Authorization: Bearer TOKEN' of programs";

web::Method MethodOf(std::string_view name) {
  if (name == "GET") return web::Method::kGet;
  return name == "HEAD" ? web::Method::kHead : web::Method::kOther;
}

// What Auth looks at.
Result<web::Request> AskedOf(const SiteRequest& request, const SiteTarget& target) {
  web::Request asked;
  SONDE_RETURN_IF_ERROR(web::ParseTarget(target.rest.empty() ? "/" : target.rest, asked));
  asked.method = MethodOf(request.method);
  asked.authorization = request.Field("Authorization");
  asked.token = request.Field(web::kTokenHeader);
  asked.host = request.Field("Host");
  asked.origin = request.Field("Origin");
  asked.fetch_site = request.Field("Sec-Fetch-Site");
  asked.user_agent = request.Field("User-Agent");
  return asked;
}

// A browser that comes over a tunnel to the socket of the tokens, whatever page has it ask: by what
// browsers say of themselves, or as it is told a name that is not the loopback's. `sonde url` says
// none of this.
bool IsBrowsers(const SiteRequest& request) {
  for (const char* field :
       {"Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Cookie"}) {
    if (request.Count(field) != 0) return true;
  }
  return request.Field("User-Agent").starts_with("Mozilla/") || !IsLoopback(request.Field("Host"));
}

// "/user/NAME" is the page's address without the '/' on which the page's other addresses stand.
std::optional<web::Response> WithSlash(const SiteTarget& target) {
  if (!target.rest.empty()) return std::nullopt;
  web::Response moved;
  moved.status = 303;
  moved.headers.emplace_back("Location", "/user/" + target.user + "/");
  return moved;
}

// A file of the page, for somebody who has shown no token: no process of a user's is asked for it.
web::Response PageFor(const SiteRequest& request, std::string_view path) {
  std::optional<web::Response> moved = WithSlash(ParseSiteTarget(request.target));
  return moved ? *std::move(moved) : web::PageAt(path);
}

}  // namespace

struct Door::Listener {
  Listener(asio::io_context& context, Tells what)
      : tells(what), acceptor(context), pause(context) {}
  const Tells tells;
  asio::basic_socket_acceptor<Protocol> acceptor;
  asio::steady_timer pause;
};

// A connection until it is handed over or refused.
class Door::Guest : public std::enable_shared_from_this<Door::Guest> {
 public:
  Guest(Door& door, Tells tells, Socket socket)
      : door_(door),
        tells_(tells),
        socket_(std::make_shared<Socket>(std::move(socket))),
        timer_(door.context_),
        peer_(PeerOf(socket_->native_handle())),
        shares_(peer_ && !door.gatekeeper_.IsProxysAccount(*peer_)),
        guests_(door.guests_) {
    ++guests_->all;
    if (shares_) ++guests_->of[*peer_];
  }
  ~Guest() {
    --guests_->all;
    if (shares_ && --guests_->of[*peer_] == 0) guests_->of.erase(*peer_);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  void Begin() {
    if (shares_ && guests_->of[*peer_] > kShare) {
      return Answer(web::ErrorResponse(503, "too many connections of yours at a time; ask again"));
    }
    Expect(std::chrono::nanoseconds(kPatience));
    Read();
  }
  void Answer(const web::Response& response);
  // Hands over the connection, with the bytes that were read from it.
  std::shared_ptr<Socket> Leave() {
    timer_.cancel();
    return socket_;
  }

  Tells tells() const { return tells_; }
  std::optional<uid_t> peer() const { return peer_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void Expect(std::chrono::nanoseconds patience);
  void Read();
  void Drain();

  Door& door_;
  const Tells tells_;
  const std::shared_ptr<Socket> socket_;
  asio::steady_timer timer_;
  const std::optional<uid_t> peer_;
  const bool shares_;
  const std::shared_ptr<Guests> guests_;
  std::string bytes_;
  std::array<char, 4096> piece_;
};

void Door::Guest::Expect(std::chrono::nanoseconds patience) {
  timer_.expires_after(patience);
  timer_.async_wait([weak = weak_from_this()](const error_code& cancelled) {
    const auto self = weak.lock();
    if (cancelled || !self) return;
    error_code ignored;
    self->socket_->close(ignored);
  });
}

void Door::Guest::Read() {
  socket_->async_read_some(
      asio::buffer(piece_), [self = shared_from_this()](const error_code& error, size_t size) {
        if (error) return;
        self->bytes_.append(self->piece_.data(), size);
        const size_t length = web::HeadLength(self->bytes_);
        if (std::min(length, self->bytes_.size()) > kHeadBytes) {
          return self->Answer(web::ErrorResponse(431, "the header is too large"));
        }
        length == std::string_view::npos ? self->Read() : self->door_.OnHead(self, length);
      });
}

void Door::Guest::Answer(const web::Response& response) {
  const bool head_only = std::string_view(bytes_).starts_with("HEAD ");
  const auto bytes = std::make_shared<const std::string>(web::TextOf(response, !head_only));
  Expect(std::chrono::nanoseconds(kPatience));
  asio::async_write(*socket_, asio::buffer(*bytes),
                    [self = shared_from_this(), bytes](const error_code& error, size_t) {
                      if (error) return;
                      error_code ignored;
                      self->socket_->shutdown(Socket::shutdown_send, ignored);
                      self->Expect(kLeaving);
                      self->Drain();
                    });
}

// A close with unread bytes would overtake the answer.
void Door::Guest::Drain() {
  socket_->async_read_some(asio::buffer(piece_),
                           [self = shared_from_this()](const error_code& error, size_t) {
                             if (!error) self->Drain();
                           });
}

Door::Door(asio::io_context& context, const Gatekeeper& gatekeeper, const Tokens& tokens,
           UserServers& servers, ListUsers users)
    : context_(context),
      gatekeeper_(gatekeeper),
      tokens_(tokens),
      servers_(servers),
      users_(std::move(users)) {}

Door::~Door() = default;

Status Door::Listen(UniqueFd listener, Tells tells) {
  auto added = std::make_unique<Listener>(context_, tells);
  error_code error;
  const int family = FamilyOf(listener.get());
  added->acceptor.assign(Protocol(family, 0), listener.Release(), error);
  if (error) return {Code::kIo, "listen: " + error.message()};
  listeners_.push_back(std::move(added));
  Accept(*listeners_.back());
  return {};
}

void Door::Accept(Listener& listener) {
  listener.acceptor.async_accept([this, &listener](const error_code& error, Socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error || guests_->all >= kMaxGuests) {
      // Out of descriptors, or too many at once: connections wait in the kernel.
      listener.pause.expires_after(kAcceptPause);
      listener.pause.async_wait([this, &listener](const error_code& cancelled) {
        if (!cancelled) Accept(listener);
      });
      if (error) return;
    } else {
      Accept(listener);
    }
    std::make_shared<Guest>(*this, listener.tells, std::move(socket))->Begin();
  });
}

void Door::OnHead(const std::shared_ptr<Guest>& guest, size_t length) {
  const Result<SiteRequest> request =
      ParseSiteRequest(std::string_view(guest->bytes()).substr(0, length));
  if (!request.ok()) return guest->Answer(web::ErrorResponse(400, request.status().message()));
  asio::post(workers_, [this, guest, request = *request]() mutable {
    Decision decision = guest->tells() == Tells::kTokens
                            ? Decision(TokenFor(guest->peer(), request))
                            : Decide(request, guest->peer());
    asio::post(context_,
               [this, guest, request = std::move(request), decision = std::move(decision)] {
                 if (const auto* answer = std::get_if<web::Response>(&decision))
                   return guest->Answer(*answer);
                 Enter(guest, request, std::get<Entry>(decision));
               });
  });
}

web::Response Door::TokenFor(std::optional<uid_t> peer, const SiteRequest& request) const {
  if (request.method != "GET") return web::ErrorResponse(405, "expected GET");
  if (!peer) return web::ErrorResponse(403, "who asks is not known");
  if (IsBrowsers(request)) return web::ErrorResponse(403, "no browser is told a token");
  const Result<Account> account = gatekeeper_.AccountOf(*peer);
  if (!account.ok()) return web::ErrorResponse(403, account.status().message());
  web::Response response;
  response.content_type = "text/plain; charset=UTF-8";
  response.body = tokens_.Of(*account) + "\n";
  return response;
}

Door::Decision Door::Decide(const SiteRequest& request, std::optional<uid_t> peer) const {
  const Result<Visitor> visitor = gatekeeper_.Admit(peer, request);
  if (!visitor.ok()) return web::ErrorResponse(403, visitor.status().message());
  if (visitor->by_proxy) return MayEnter(request, *visitor, true);
  const Result<web::Request> asked = AskedOf(request, ParseSiteTarget(request.target));
  if (!asked.ok()) return web::ErrorResponse(asked.status());
  const web::Auth auth(tokens_.Of(visitor->account));
  using enum web::Auth::Verdict;
  switch (auth.Check(*asked)) {
    case kAllowed:
      return MayEnter(request, *visitor, false);
    case kByBrowser:
      return MayEnter(request, *visitor, true);
    case kPageOnly:
      return PageFor(request, asked->path);
    case kRefused:
      return web::Auth::Refuse(*asked, kNoToken);
    case kOtherOrigin:
      break;
  }
  return web::Auth::RefuseOrigin(*asked);
}

Door::Decision Door::MayEnter(const SiteRequest& request, const Visitor& visitor,
                              bool by_browser) const {
  if (request.target == "/users") {
    if (request.method != "GET") return web::ErrorResponse(405, "expected GET");
    return Users(visitor);
  }
  const SiteTarget target = ParseSiteTarget(request.target);
  const Result<Account> owner = gatekeeper_.OwnerFor(visitor, target.user);
  if (!owner.ok()) return web::ErrorResponse(404, owner.status().message());
  if (auto moved = WithSlash(target)) return *std::move(moved);
  return Entry{visitor, *owner, by_browser};
}

void Door::Enter(const std::shared_ptr<Guest>& guest, const SiteRequest& request,
                 const Entry& entry) {
  Remark(entry.visitor, entry.owner);
  const SiteTarget target = ParseSiteTarget(request.target);
  const size_t length = web::HeadLength(guest->bytes());
  servers_.Hand(
      entry.owner.name,
      {guest->Leave(),
       [request, target, by_browser = entry.by_browser, body = guest->bytes().substr(length)](
           const std::string& token) { return HeadFor(request, target, token, by_browser) + body; },
       [guest](const Status& why) {
         guest->Answer(web::ErrorResponse(StatusOf(why), why.message()));
       }});
}

web::Response Door::Users(const Visitor& visitor) const {
  web::Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("user", visitor.account.name).Field("admin", visitor.admin);
  json.Key("users").BeginArray();
  if (visitor.admin) {
    for (const std::string& user : users_()) json.Value(user);
  } else {
    json.Value(visitor.account.name);
  }
  json.EndArray().EndObject();
  return response;
}

// Logs which visitor looks at another user's archive, once in a while.
void Door::Remark(const Visitor& visitor, const Account& owner) {
  if (visitor.account.name == owner.name) return;
  const Nanos now = Clock::System().Monotonic();
  if (remarked_.size() >= kMaxRemarked) remarked_.clear();
  Nanos& last = remarked_[{visitor.account.name, owner.name}];
  if (last != 0 && now - last < kRemarkAgain) return;
  last = now;
  log::Info("{} looks at the archive of {}", visitor.account.name, owner.name);
}

}  // namespace sonde::site
