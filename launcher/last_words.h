// Why a daemon has ended: what it said itself over the lifeline ('D' packets, launcher/launch.h),
// and what the dynamic linker, an abort or a fatal signal wrote to its stderr.
//
// The launcher is not the daemon's parent, so it has no wait status to look at. The daemon is a
// process of the user, so nothing that it says is trusted: it ends up as one short line of
// printable characters.
//
// Thread safety: one thread at a time. Nothing here blocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/lifeline.h"

namespace sonde::launch {

// What went wrong: it could not be started; it said why it failed; it crashed; it was killed, or
// ended without a word; it could not store the profile; it had not finished in time and its
// launcher killed it. The first and the last are known without its words.
enum class FailureKind : unsigned char {
  kStart,
  kReported,
  kCrashed,
  kKilled,
  kProfile,
  kUnfinished,
};

struct Failure {
  FailureKind kind;
  std::string reason;  // one line
};

class LastWords {
 public:
  static constexpr size_t kMost = 200;  // characters of a reason

  // A packet of the daemon's; those of other kinds are passed over.
  void Take(std::string_view packet);
  // What the daemon has written to its stderr by now; of much, the last part is kept.
  void ReadErrors(int errors);
  // All packets that are there, and the stderr. Once the daemon is gone.
  void ReadAll(Lifeline& lifeline, int errors);

  // For a daemon that is gone: what went wrong, if something did. `asked`: it was asked to finish
  // before it was gone.
  std::optional<Failure> Judge(bool asked) const;
  // For a daemon that is gone: whether it ended by itself and left nothing behind, as it says.
  bool orderly() const;

 private:
  enum class State : unsigned char { kUnknown, kUp, kDone, kFailed };

  State state_ = State::kUnknown;
  bool tells_end_ = false;  // daemons of older releases do not
  bool ended_ = false;
  std::string reason_;
  std::string errors_;
};

}  // namespace sonde::launch
