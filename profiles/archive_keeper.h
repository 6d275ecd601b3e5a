// Keeps an archive while a server has it open, for days perhaps: takes in the steps that finish,
// and answers the commands that find the archive locked.
//
// They ask over the socket `db.sock` in the archive's directory (0600; besides, only processes of
// its owner and root are answered). The questions are "ingest\n": what waits in live/ is taken in;
// "tag KEY<tab>SET<tab>REMOVE\n": the tags of a profile are changed (tags.h); "prune\n": what
// exceeds the limits is deleted, for at most kPruneFor. The answer is "ok N\n", how many, or "error
// WHY\n". All that a command wants to see it reads from the disk by itself (archive.h), so who asks
// for an ingest need not wait for an answer.
//
// Thread safety: made and destroyed by one thread; it has one of its own.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "core/time.h"
#include "profiles/archive.h"
#include "profiles/retention.h"

namespace sonde {

class ArchiveKeeper {
 public:
  static constexpr Nanos kBetween = 30 * kSecond;  // without being asked

  static constexpr Nanos kPruneFor = 2 * kSecond;

  // The archive must outlive it. What exceeds the limits is deleted when something was taken in.
  ArchiveKeeper(Archive& archive, std::string root, const Retention& limits = {});
  ~ArchiveKeeper();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

// Has whoever keeps the archive take in what waits; the answer's N. At most `wait` for the answer,
// 0: none is waited for. kNotFound if nobody on this host keeps it.
Result<uint64_t> AskKeeper(const std::string& root, Nanos wait);
// The same for another question, without the newline.
Result<uint64_t> AskKeeper(const std::string& root, std::string_view question, Nanos wait);
// The question by which a profile's tags are changed.
std::string TagQuestion(const std::string& key, const TagChange& change);

// The number in an answer; kIo with what an error says, kCorrupt for anything else.
Result<uint64_t> ParseKeeperAnswer(std::string_view answer);

}  // namespace sonde
