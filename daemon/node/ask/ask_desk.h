// The desk at which the processes of this node ask about their step (libclient/ask/layout.h).
//
// Owns the socket beside the application's, and the connections. A question is checked here and
// goes up to the head under a number of this node's; the answer goes back to the process that
// asked. Equal subscriptions of several processes are one at the head. The desk waits for nobody:
// values that a process does not read are queued up to a limit, then left out and counted
// (Packet::missed), and a connection whose answers pile up is closed.
//
// Processes are not trusted: another user's are refused, the limits below hold, and one that breaks
// the layout is closed.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "libclient/ask/layout.h"

namespace sonde::node {

class AskDesk {
 public:
  struct Options {
    std::string socket;  // of the application, abstract, without the leading zero byte
    uint32_t uid = 0;    // whose processes may ask
    int level = 1;
    Nanos period = kDefaultPeriod;
    size_t max_connections = 64;
    size_t max_open = 16;                   // questions of one connection without an answer
    size_t max_subscriptions = 64;          // of one connection
    size_t max_queued_values = 256u << 10;  // waiting for one connection: beyond, values go
    size_t max_queued = 8u << 20;           // and beyond this, the connection
    size_t max_queued_all = 32u << 20;      // of all connections together
    Nanos hello_within = 5 * kSecond;
    Nanos patience = 10 * kSecond;          // for the head's answer
    const Clock* clock = &Clock::System();  // the head's
  };
  // Sends a message to the head; false if there is no way now.
  using SendUp = std::function<bool(const tree::AskMessage&)>;

  static Result<std::unique_ptr<AskDesk>> Open(Loop& loop, Options options, SendUp send_up);
  ~AskDesk();
  AskDesk(const AskDesk&) = delete;
  AskDesk& operator=(const AskDesk&) = delete;

  // The way up is there: what waited for it goes.
  void Connected();
  // The way up is gone: every open question fails with this.
  void Disconnected(std::string_view why);
  void OnAnswer(const tree::AnswerMessage& answer);

  size_t connections() const { return connections_.size(); }
  size_t open_questions() const { return open_.size(); }

 private:
  struct Connection;
  using ConnectionId = uint64_t;
  // The process that asked, and its number for the question.
  struct Asker {
    ConnectionId connection = 0;
    uint64_t id = 0;
    bool told = false;  // of a subscription: that it is accepted
  };
  // A question on its way, or a subscription.
  struct Question {
    tree::AskMessage message;
    std::vector<Asker> askers;  // one, or for a subscription several
    bool sent = false;
    bool accepted = false;
    Loop::TimerId timer = 0;
  };

  AskDesk(Loop& loop, Options options, SendUp send_up);
  Status Listen();
  void AcceptAll();
  void Admit(UniqueFd fd);
  void OnReady(ConnectionId id, uint32_t events);
  void Receive(Connection& connection);
  Status OnPacket(Connection& connection, std::string_view packet);
  Status OnRequest(Connection& connection, const client::Packet& head, std::string_view body);
  void Ask(Connection& connection, uint64_t id, client::AskKind kind, std::string body);
  void Subscribe(Connection& connection, uint64_t id, std::string spec);
  void Cancel(Connection& connection, uint64_t id);
  void SendUpOrWait(Question& open);
  void Leave(uint64_t number, const Asker& asker);
  void Fail(uint64_t number, Code code, std::string_view why);

  void Answer(ConnectionId to, uint64_t id, client::AskKind kind, std::string_view body);
  void SendFailed(ConnectionId to, uint64_t id, Code code, std::string_view why);
  void Push(ConnectionId to, uint64_t id, std::string_view body);
  void SendWelcome(Connection& connection);
  void Queue(Connection& connection, client::Packet head, std::string_view body);
  void Flush(Connection& connection);
  // From anywhere on the stack: the connection goes with the next turn of the loop.
  void CloseLater(Connection& connection, std::string_view why);
  void Remove(ConnectionId id);

  Loop& loop_;
  const Options options_;
  const SendUp send_up_;
  UniqueFd listener_;
  std::unordered_map<ConnectionId, std::unique_ptr<Connection>> connections_;
  ConnectionId next_connection_ = 1;
  std::unordered_map<uint64_t, Question> open_;         // by this node's number
  std::map<std::string, uint64_t, std::less<>> specs_;  // of subscriptions
  uint64_t next_number_ = 1;
  size_t queued_ = 0;
  std::unique_ptr<char[]> packet_;  // the one being received
  bool said_refused_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// What the code of a Status is to a process: a code of libclient/sonde_query.h.
uint8_t AskCodeOf(Code code);

}  // namespace sonde::node
