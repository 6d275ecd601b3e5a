// Keeps an archive while a server has it open, for days perhaps: takes in the steps that finish,
// and answers the commands that find the archive locked.
//
// They ask over the socket `db.sock` in the archive's directory (0600; besides, only processes of
// its owner and root are answered). There is one question, "ingest\n": what waits in live/ is taken
// in, and the answer is "ok N\n", how many, or "error WHY\n". All that a command wants to see it
// reads from the disk by itself (archive.h), so nobody has to wait for an answer.
//
// Thread safety: made and destroyed by one thread; it has one of its own.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "core/time.h"
#include "profiles/archive.h"

namespace sonde {

class ArchiveKeeper {
 public:
  static constexpr Nanos kBetween = 30 * kSecond;  // without being asked

  // The archive must outlive it.
  ArchiveKeeper(Archive& archive, std::string root);
  ~ArchiveKeeper();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

// Has whoever keeps the archive take in what waits; the answer's N. At most `wait` for the answer,
// 0: none is waited for. kNotFound if nobody on this host keeps it.
Result<uint64_t> AskKeeper(const std::string& root, Nanos wait);

// The number in an answer; kIo with what an error says, kCorrupt for anything else.
Result<uint64_t> ParseKeeperAnswer(std::string_view answer);

}  // namespace sonde
