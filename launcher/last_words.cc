#include "launcher/last_words.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "core/text/printable.h"
#include "launcher/launch.h"
#include "launcher/user_socket.h"

namespace sonde::launch {
namespace {

// Of what a daemon wrote to its stderr; a reason shows less.
constexpr size_t kKeptErrors = 1024;
// In one look: a daemon that writes all the while is not read for ever.
constexpr int kMostReads = 1024;
constexpr int kMostPackets = 64;

// What the dynamic linker says, and the daemon at a fatal signal.
bool SaysItIsBroken(std::string_view errors) {
  return errors.find("error while loading shared libraries") != std::string_view::npos ||
         errors.find("sonded crashed:") != std::string_view::npos;
}

}  // namespace

void LastWords::Take(std::string_view packet) {
  if (packet.empty() || packet[0] != kDaemonState) return;
  ForEach(packet.substr(1), [&](std::string_view name, std::string_view value) {
    if (name == key::kReason) reason_ = OneLine(value, kMost);
    if (name == key::kLast) tells_end_ = value == "ended";
    if (name != key::kState) return;
    if (value == "up") state_ = State::kUp;
    if (value == "done") state_ = State::kDone;
    if (value == "failed") state_ = State::kFailed;
    if (value == "ended") ended_ = true;
  });
}

void LastWords::ReadErrors(int errors) {
  char part[4096];
  for (int i = 0; i < kMostReads && errors >= 0; ++i) {
    if (PeekPacket(errors) != NextPacket::kPlain) return;
    const ssize_t got = ::read(errors, part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    errors_.append(part, static_cast<size_t>(got));
    if (errors_.size() > kKeptErrors) errors_.erase(0, errors_.size() - kKeptErrors);
  }
}

void LastWords::ReadAll(Lifeline& lifeline, int errors) {
  const Deadline now(std::chrono::milliseconds(0));
  std::string packet;
  for (int i = 0; i < kMostPackets; ++i) {
    if (lifeline.Receive(packet, now) != Lifeline::Event::kPacket) break;
    Take(packet);
  }
  if (lifeline.broken()) {
    state_ = State::kFailed;
    reason_ = "it sent its launcher open files, which a launcher does not take";
    tells_end_ = true;  // and whatever it said of that is unread
    ended_ = false;
  }
  ReadErrors(errors);
}

bool LastWords::orderly() const {
  return (state_ == State::kDone || state_ == State::kFailed) && (ended_ || !tells_end_);
}

std::optional<Failure> LastWords::Judge(bool asked) const {
  if (state_ == State::kFailed) return Failure{FailureKind::kReported, reason_};
  if (state_ == State::kDone && orderly()) {
    if (reason_.empty()) return std::nullopt;
    return Failure{FailureKind::kProfile, reason_};
  }
  // A daemon of an older release says neither, and logs to its stderr; what its steps are too short
  // for is still told.
  if (asked && state_ == State::kUnknown && !SaysItIsBroken(errors_)) return std::nullopt;
  const std::string errors = OneLine(errors_, kMost, true);
  if (!errors.empty()) return Failure{FailureKind::kCrashed, errors};
  return Failure{FailureKind::kKilled, "it was killed, or ended without a word"};
}

}  // namespace sonde::launch
