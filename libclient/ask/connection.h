// A connection for questions to the daemon of this node: connecting, packets, whole messages.
//
// What the daemon sends is not trusted: a packet or a body that breaks layout.h ends the
// connection. Owns its descriptor.
//
// Thread safety: none.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string_view>

#include "libclient/ask/bytes.h"
#include "libclient/ask/layout.h"

namespace sonde::client {

// One message of the daemon; the caller frees `body`.
struct AskMessage {
  uint64_t id;
  AskKind kind;
  uint32_t missed;
  char* body;
  size_t size;
};

class AskConnection {
 public:
  AskConnection() = default;
  ~AskConnection();
  AskConnection(const AskConnection&) = delete;
  AskConnection& operator=(const AskConnection&) = delete;

  // Connects, makes sure that the daemon runs as this user, and exchanges hello and welcome. Tries
  // again until the deadline if the daemon is not there yet. Returns a code of sonde_query.h.
  int Open(const Deadline& deadline);
  // A request of at most kMaxRequest bytes.
  int Send(AskKind kind, uint64_t id, std::string_view body, const Deadline& deadline);
  // Gives the next whole message. SONDE_TIMEOUT if none came by the deadline, SONDE_LOST at the end
  // of the connection.
  int Receive(const Deadline& deadline, AskMessage* message);

  int fd() const { return fd_; }
  int64_t period() const { return period_; }

 private:
  int Connect(const char* name);
  int Greet(const Deadline& deadline);
  // One packet into packet_; its size, or the negative of a code.
  long ReceivePacket(const Deadline& deadline);
  // SONDE_OK once the message is whole, SONDE_TIMEOUT if it goes on.
  int TakePacket(size_t size, AskMessage* message);
  int Lose();

  int fd_ = -1;
  int64_t period_ = 0;
  char* packet_ = nullptr;  // kMaxPacket bytes
  Packet assembled_ = {};   // the first packet of the message that is being received
  Bytes body_;
  bool lost_ = false;
};

}  // namespace sonde::client
