#include "daemon/node/ask/ask_desk.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/node/ask/ask_request.h"
#include "libclient/sonde_query.h"

namespace sonde::node {

using client::AskKind;
using client::Packet;

namespace {

constexpr int kQueue = 64;              // connections that may wait to be accepted
constexpr int kMaxPacketsAtOnce = 32;   // of one connection, before others have their turn
constexpr size_t kMaxQuestions = 1024;  // of all connections

// A process asks for what was until now by its machine's wall clock. The step has another time if
// that clock was set, or is wrong. Times long ago are those of earlier answers.
void ToStepTime(const Clock& step, QuerySpec& spec) {
  constexpr Nanos kUntilNow = 10 * kSecond;
  const Nanos wall = Clock::System().Now();
  if (spec.end < wall - kUntilNow || spec.end > wall + kUntilNow) return;
  const Nanos ahead = step.Now() - wall;
  if (std::abs(ahead) < kSecond) return;
  spec.start = std::max<Nanos>(spec.start, -ahead) + ahead;
  spec.end += ahead;
}

}  // namespace

struct AskDesk::Connection {
  ConnectionId id = 0;
  UniqueFd fd;
  bool greeted = false;
  bool closing = false;
  bool writing = false;  // waits until it may send
  Loop::TimerId hello_timer = 0;
  std::unordered_map<uint64_t, uint64_t> questions;  // its number -> ours
  std::unordered_map<uint64_t, uint64_t> subscriptions;
  std::unordered_map<uint64_t, uint32_t> missed;  // by its number of the subscription
  std::deque<std::string> queue;                  // packets
  size_t queued = 0;
};

uint8_t AskCodeOf(Code code) {
  switch (code) {
    case Code::kOk:
      return SONDE_OK;
    case Code::kInvalid:
    case Code::kCorrupt:
    case Code::kUnsupported:
      return SONDE_INVALID;
    case Code::kNotFound:
      return SONDE_NOT_FOUND;
    case Code::kLimit:
    case Code::kBusy:
      return SONDE_LIMIT;
    case Code::kUnavailable:
      return SONDE_LOST;
    case Code::kTimeout:
      return SONDE_TIMEOUT;
    default:
      return SONDE_SYSTEM;
  }
}

// --- The socket ---

Result<std::unique_ptr<AskDesk>> AskDesk::Open(Loop& loop, Options options, SendUp send_up) {
  std::unique_ptr<AskDesk> desk(new AskDesk(loop, std::move(options), std::move(send_up)));
  SONDE_RETURN_IF_ERROR(desk->Listen());
  return desk;
}

AskDesk::AskDesk(Loop& loop, Options options, SendUp send_up)
    : loop_(loop), options_(std::move(options)), send_up_(std::move(send_up)) {}

AskDesk::~AskDesk() {
  if (listener_) loop_.Unwatch(listener_.get());
  for (const auto& [id, connection] : connections_) {
    loop_.Unwatch(connection->fd.get());
    loop_.Cancel(connection->hello_timer);
  }
  for (const auto& [number, question] : open_) loop_.Cancel(question.timer);
}

Status AskDesk::Listen() {
  const std::string name = options_.socket + client::kAskSuffix;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (options_.socket.empty() || name.size() + 1 > sizeof(address.sun_path)) {
    return {Code::kInvalid, fmt::format("'{}' cannot be the name of a socket", name)};
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  listener_ = UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_ ||
      bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener_.get(), kQueue) != 0) {
    return SystemError(fmt::format("listen for questions of the application at @{}", name));
  }
  return loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { AcceptAll(); });
}

void AskDesk::AcceptAll() {
  for (int i = 0; i < kQueue; ++i) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;  // no more, or no descriptor left: the kernel's queue holds it
    Admit(std::move(fd));
  }
}

void AskDesk::Admit(UniqueFd fd) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  std::string why;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.uid != options_.uid) {
    why = fmt::format("process {} belongs to user {}, the step to user {}", peer.pid, peer.uid,
                      options_.uid);
  } else if (connections_.size() >= options_.max_connections) {
    why = fmt::format("process {}: {} connections of this node ask already", peer.pid,
                      connections_.size());
  }
  if (!why.empty()) {
    if (!std::exchange(said_refused_, true)) {
      log::Warning("questions: refused: {}; further refusals are not logged", why);
    }
    return;
  }
  const ConnectionId id = next_connection_++;
  auto connection = std::make_unique<Connection>();
  connection->id = id;
  connection->fd = std::move(fd);
  const Status watched = loop_.Watch(connection->fd.get(), EPOLLIN,
                                     [this, id](uint32_t events) { OnReady(id, events); });
  if (!watched.ok()) return log::Warning("questions: {}", watched.message());
  connection->hello_timer = loop_.After(options_.hello_within, [this, id] { Remove(id); });
  connections_.emplace(id, std::move(connection));
}

void AskDesk::OnReady(ConnectionId id, uint32_t events) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  Connection& connection = *at->second;
  if ((events & EPOLLOUT) != 0) Flush(connection);
  if (!connection.closing && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) Receive(connection);
  if (connection.closing) Remove(id);
}

void AskDesk::Receive(Connection& connection) {
  if (packet_ == nullptr) packet_ = std::make_unique_for_overwrite<char[]>(client::kMaxPacket);
  for (int i = 0; i < kMaxPacketsAtOnce && !connection.closing; ++i) {
    const ssize_t got =
        recv(connection.fd.get(), packet_.get(), client::kMaxPacket, MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      connection.closing = true;
      return;
    }
    const auto size = static_cast<size_t>(got);
    const Status status = size > client::kMaxPacket
                              ? Status(Code::kCorrupt, "a packet that is too long")
                              : OnPacket(connection, {packet_.get(), size});
    if (!status.ok()) CloseLater(connection, status.message());
  }
}

Status AskDesk::OnPacket(Connection& connection, std::string_view packet) {
  Packet head{};
  if (packet.size() < sizeof head) return {Code::kCorrupt, "a packet that is too short"};
  std::memcpy(&head, packet.data(), sizeof head);
  const std::string_view body = packet.substr(sizeof head);
  if (connection.greeted) return OnRequest(connection, head, body);
  if (head.kind != static_cast<uint8_t>(AskKind::kHello)) {
    return {Code::kCorrupt, "it did not introduce itself"};
  }
  if (const Status hello = CheckAskHello(body); !hello.ok()) {
    SendFailed(connection.id, 0, hello.code(), hello.message());
    return hello;
  }
  connection.greeted = true;
  loop_.Cancel(connection.hello_timer);
  SendWelcome(connection);
  return {};
}

void AskDesk::SendWelcome(Connection& connection) {
  const client::AskWelcome welcome = {client::kAskMagic, client::kAskVersion, options_.level,
                                      options_.period};
  Answer(connection.id, 0, AskKind::kWelcome,
         {reinterpret_cast<const char*>(&welcome), sizeof welcome});
}

// --- Requests ---

Status AskDesk::OnRequest(Connection& connection, const Packet& head, std::string_view body) {
  const auto kind = static_cast<AskKind>(head.kind);
  if (kind == AskKind::kCancel) {
    Cancel(connection, head.id);
    return {};
  }
  if (connection.questions.contains(head.id) || connection.subscriptions.contains(head.id)) {
    return {Code::kCorrupt, "two questions of one number"};
  }
  const auto refuse = [&](const Status& why) {
    SendFailed(connection.id, head.id, why.code(), why.message());
  };
  if (kind == AskKind::kList) {
    Result<std::string> metric = DecodeAskList(body);
    metric.ok() ? Ask(connection, head.id, kind, *std::move(metric)) : refuse(metric.status());
    return {};
  }
  if (kind == AskKind::kAlarm) {
    const Status alarm = CheckAskAlarm(body);
    alarm.ok() ? Ask(connection, head.id, kind, std::string(body)) : refuse(alarm);
    return {};
  }
  if (kind != AskKind::kQuery && kind != AskKind::kSubscribe) {
    return {Code::kCorrupt, fmt::format("a packet of kind {}", head.kind)};
  }
  Result<QuerySpec> spec =
      kind == AskKind::kQuery ? DecodeAskQuery(body) : DecodeAskSubscription(body);
  if (!spec.ok()) {
    refuse(spec.status());
    return {};
  }
  if (kind == AskKind::kQuery) ToStepTime(*options_.clock, *spec);
  std::string bytes;
  EncodeQuery(*spec, bytes);
  if (kind == AskKind::kQuery) {
    Ask(connection, head.id, kind, std::move(bytes));
  } else {
    Subscribe(connection, head.id, std::move(bytes));
  }
  return {};
}

void AskDesk::Ask(Connection& connection, uint64_t id, AskKind kind, std::string body) {
  if (connection.questions.size() >= options_.max_open || open_.size() >= kMaxQuestions) {
    return SendFailed(
        connection.id, id, Code::kLimit,
        fmt::format("{} questions of this process are open already", connection.questions.size()));
  }
  const uint64_t number = next_number_++;
  Question& question = open_[number];
  question.message = {number, static_cast<uint32_t>(kind), std::move(body)};
  question.askers.push_back({connection.id, id, false});
  question.timer = loop_.After(options_.patience, [this, number] {
    Fail(number, Code::kTimeout, "the head of the step did not answer in time");
  });
  connection.questions[id] = number;
  SendUpOrWait(question);
}

void AskDesk::Subscribe(Connection& connection, uint64_t id, std::string spec) {
  if (connection.subscriptions.size() >= options_.max_subscriptions ||
      open_.size() >= kMaxQuestions) {
    return SendFailed(
        connection.id, id, Code::kLimit,
        fmt::format("this process has {} subscriptions already", connection.subscriptions.size()));
  }
  const auto [at, added] = specs_.try_emplace(std::move(spec), next_number_);
  const uint64_t number = at->second;
  connection.subscriptions[id] = number;
  if (!added) {
    Question& question = open_[number];
    question.askers.push_back({connection.id, id, question.accepted});
    if (question.accepted) Answer(connection.id, id, AskKind::kAccepted, "");
    return;
  }
  ++next_number_;
  Question& question = open_[number];
  question.message = {number, static_cast<uint32_t>(AskKind::kSubscribe), at->first};
  question.askers.push_back({connection.id, id, false});
  SendUpOrWait(question);
}

void AskDesk::Cancel(Connection& connection, uint64_t id) {
  const auto at = connection.subscriptions.find(id);
  if (at == connection.subscriptions.end()) return;  // it may have ended meanwhile
  const uint64_t number = at->second;
  connection.subscriptions.erase(at);
  connection.missed.erase(id);
  Leave(number, {connection.id, id, false});
}

void AskDesk::SendUpOrWait(Question& question) {
  if (!question.sent) question.sent = send_up_(question.message);
}

// One asker less; the last one ends it.
void AskDesk::Leave(uint64_t number, const Asker& asker) {
  const auto at = open_.find(number);
  if (at == open_.end()) return;
  Question& question = at->second;
  std::erase_if(question.askers, [&](const Asker& a) {
    return a.connection == asker.connection && a.id == asker.id;
  });
  if (!question.askers.empty()) return;
  if (question.message.kind == static_cast<uint32_t>(AskKind::kSubscribe)) {
    specs_.erase(question.message.body);
    if (question.sent) send_up_({number, static_cast<uint32_t>(AskKind::kCancel), ""});
  }
  loop_.Cancel(question.timer);
  open_.erase(at);
}

void AskDesk::Connected() {
  for (auto& [number, question] : open_) SendUpOrWait(question);
}

void AskDesk::Disconnected(std::string_view why) {
  std::vector<uint64_t> numbers;
  for (const auto& [number, question] : open_) numbers.push_back(number);
  for (const uint64_t number : numbers) Fail(number, Code::kUnavailable, why);
}

void AskDesk::Fail(uint64_t number, Code code, std::string_view why) {
  std::string body;
  ByteWriter w(body);
  w.Fixed(AskCodeOf(code));
  w.Text(why.substr(0, client::kMaxWhy));
  OnAnswer({number, static_cast<uint32_t>(AskKind::kFailed), std::move(body)});
}

// --- Answers ---

void AskDesk::OnAnswer(const tree::AnswerMessage& answer) {
  const auto at = open_.find(answer.id);
  if (at == open_.end()) return;  // whoever asked is gone
  Question& question = at->second;
  const auto kind = static_cast<AskKind>(answer.kind);
  if (kind == AskKind::kPoints) {
    for (const Asker& asker : question.askers) Push(asker.connection, asker.id, answer.body);
    return;
  }
  if (kind == AskKind::kAccepted) {
    question.accepted = true;
    for (Asker& asker : question.askers) {
      if (!std::exchange(asker.told, true)) Answer(asker.connection, asker.id, kind, "");
    }
    return;
  }
  if (kind != AskKind::kAnswer && kind != AskKind::kListing && kind != AskKind::kFailed) return;
  const Question done = std::move(question);
  loop_.Cancel(done.timer);
  if (done.message.kind == static_cast<uint32_t>(AskKind::kSubscribe)) {
    specs_.erase(done.message.body);
  }
  open_.erase(at);
  for (const Asker& asker : done.askers) {
    const auto found = connections_.find(asker.connection);
    if (found == connections_.end()) continue;
    found->second->questions.erase(asker.id);
    found->second->subscriptions.erase(asker.id);
    found->second->missed.erase(asker.id);
    Answer(asker.connection, asker.id, kind, answer.body);
  }
}

void AskDesk::Answer(ConnectionId to, uint64_t id, AskKind kind, std::string_view body) {
  const auto at = connections_.find(to);
  if (at == connections_.end() || at->second->closing) return;
  Connection& connection = *at->second;
  if (connection.queued + body.size() > options_.max_queued) {
    return CloseLater(connection, "it does not read its answers");
  }
  const bool crowded = queued_ + body.size() > options_.max_queued_all;
  if (kind != AskKind::kFailed && (body.size() > client::kMaxAnswer || crowded)) {
    return SendFailed(to, id, Code::kLimit,
                      "the answer is too large; ask for less, or for a downsample");
  }
  Queue(connection, {id, static_cast<uint8_t>(kind), 0, 0, 0}, body);
}

void AskDesk::SendFailed(ConnectionId to, uint64_t id, Code code, std::string_view why) {
  std::string body;
  ByteWriter w(body);
  w.Fixed(AskCodeOf(code));
  w.Text(why.substr(0, client::kMaxWhy));
  Answer(to, id, AskKind::kFailed, body);
}

// A value that its reader is not ready for is left out.
void AskDesk::Push(ConnectionId to, uint64_t id, std::string_view body) {
  const auto at = connections_.find(to);
  if (at == connections_.end() || at->second->closing) return;
  Connection& connection = *at->second;
  if (connection.queued + body.size() > options_.max_queued_values ||
      queued_ + body.size() > options_.max_queued_all) {
    ++connection.missed[id];
    return;
  }
  Packet head{id, static_cast<uint8_t>(AskKind::kPoints), 0, 0, 0};
  if (const auto missed = connection.missed.find(id); missed != connection.missed.end()) {
    head.missed = missed->second;
    connection.missed.erase(missed);
  }
  Queue(connection, head, body);
}

void AskDesk::Queue(Connection& connection, Packet head, std::string_view body) {
  constexpr size_t kPiece = client::kMaxPacket - sizeof head;
  do {
    const std::string_view piece = body.substr(0, kPiece);
    body.remove_prefix(piece.size());
    head.more = body.empty() ? 0 : 1;
    std::string packet(reinterpret_cast<const char*>(&head), sizeof head);
    packet.append(piece);
    connection.queued += packet.size();
    queued_ += packet.size();
    connection.queue.push_back(std::move(packet));
  } while (!body.empty());
  Flush(connection);
}

void AskDesk::Flush(Connection& connection) {
  while (!connection.queue.empty()) {
    const std::string& packet = connection.queue.front();
    const ssize_t sent =
        send(connection.fd.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) return CloseLater(connection, "it is gone");
    connection.queued -= packet.size();
    queued_ -= packet.size();
    connection.queue.pop_front();
  }
  const bool waits = !connection.queue.empty();
  if (std::exchange(connection.writing, waits) == waits) return;
  const Status changed =
      loop_.ChangeEvents(connection.fd.get(), waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
  if (!changed.ok()) CloseLater(connection, changed.message());
}

void AskDesk::CloseLater(Connection& connection, std::string_view why) {
  if (std::exchange(connection.closing, true)) return;
  log::Debug("questions: a connection is closed: {}", why);
  loop_.Post([this, id = connection.id, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) Remove(id);
  });
}

void AskDesk::Remove(ConnectionId id) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  const std::unique_ptr<Connection> connection = std::move(at->second);
  connections_.erase(at);
  loop_.Unwatch(connection->fd.get());
  loop_.Cancel(connection->hello_timer);
  queued_ -= connection->queued;
  for (const auto& [theirs, number] : connection->questions) Leave(number, {id, theirs, false});
  for (const auto& [theirs, number] : connection->subscriptions) {
    Leave(number, {id, theirs, false});
  }
}

}  // namespace sonde::node
