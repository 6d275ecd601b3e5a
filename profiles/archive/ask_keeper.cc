#include "profiles/archive/ask_keeper.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "profiles/archive/keeper_socket.h"
#include "profiles/archive/open_archive.h"
#include "profiles/records/keys.h"
#include "profiles/records/tags.h"

namespace sonde {
namespace {

using keeper::AnswerLine;

constexpr Nanos kTagging = 10 * kSecond;
constexpr Nanos kLongWork = 600 * kSecond;  // between two lines of an answer

// A connection to the archive's keeper; kNotFound.
Result<UniqueFd> Reach(const std::string& root, Nanos patience) {
  UniqueFd directory;
  const auto address = keeper::AddressOf(root, directory);
  const Status nobody(Code::kNotFound, "nobody on this host keeps the archive " + root);
  if (!address.ok()) return nobody;
  UniqueFd socket = keeper::MakeSocket();
  const auto* where = reinterpret_cast<const sockaddr*>(&*address);
  keeper::SetPatience(socket.get(), patience);
  if (socket.get() < 0 || ::connect(socket.get(), where, sizeof(*address)) != 0) return nobody;
  // Another user's process would only pretend to be the keeper.
  if (!keeper::IsOurs(socket.get())) {
    return Status(Code::kNotFound, "who keeps the archive " + root + " is another user");
  }
  return socket;
}

// The last line of the answer.
Result<AnswerLine> Ask(const std::string& root, std::string_view question, Nanos patience,
                       const ArchiveProgress& progress = nullptr, const OnWait& waits = nullptr,
                       int file = -1) {
  const auto socket = Reach(root, patience);
  if (!socket.ok()) return socket.status();
  if (!keeper::SendAll(socket->get(), std::string(question) + "\n", file)) {
    return SystemError("ask who keeps the archive " + root);
  }
  keeper::LineReader lines(socket->get());
  std::string behind;
  while (true) {
    auto line = keeper::ParseAnswerLine(lines.Next(keeper::kMaxAnswer));
    if (!line.ok() || line->last) return line;
    if (!line->behind.empty()) {
      if (waits && line->behind != behind) waits(line->behind);
      behind = line->behind;
      continue;
    }
    if (progress && !progress(line->count, line->total)) return StoppedWork();
  }
}

}  // namespace

Result<uint64_t> AskToIngest(const std::string& root, Nanos wait) {
  if (wait == 0) {
    const auto socket = Reach(root, kMillisecond);
    if (!socket.ok()) return socket.status();
    if (keeper::SendAll(socket->get(), std::string(keeper::kIngest) + "\n")) return 0;
    return SystemError("ask who keeps the archive " + root);
  }
  const auto answer = Ask(root, keeper::kIngest, wait);
  return answer.ok() ? Result<uint64_t>(answer->count) : answer.status();
}

Result<uint64_t> AskToTag(const std::string& root, const std::string& key,
                          const TagChange& change) {
  const std::string question = std::string(keeper::kTag) + key + "\t" + TagChangeToText(change);
  const auto answer = Ask(root, question, kTagging);
  return answer.ok() ? Result<uint64_t>(answer->count) : answer.status();
}

Result<UserTags> TagWhereItIsOpen(const Archive& archive, OwnedArchive* owner,
                                  const std::string& key, const TagChange& change) {
  auto here = owner != nullptr ? owner->Tag(key, change) : Result<UserTags>(WhyNotOwned(archive));
  if (here.status().code() != Code::kBusy || (owner != nullptr && owner->IsOpen())) return here;
  const auto asked = AskToTag(archive.root(), key, change);
  const auto known = keys::DescribeKey(key);
  if (asked.ok() && known) {
    // Find reads the archive anew.
    const auto found = archive.Find(known->id);
    if (!found.ok()) return found.status();
    for (const ProfileEntry& entry : *found) {
      if (entry.key == key) return entry.job.tags;
    }
    return Status(Code::kNotFound, "there is no profile " + key.substr(0, 256) + " any more");
  }
  if (asked.status().code() == Code::kNotFound) return here;
  // The keeper's message says why it did not.
  return Status(Code::kBusy, std::string(asked.status().message()));
}

Result<PruneReport> AskToPrune(const std::string& root, const Retention& limits,
                               const ArchiveProgress& progress, const OnWait& waits) {
  const auto answer =
      Ask(root, std::string(keeper::kPrune) + RetentionToText(limits), kLongWork, progress, waits);
  return answer.ok() ? PruneFromJson(answer->more) : answer.status();
}

Status AskToCompact(const std::string& root, const ArchiveProgress& progress, const OnWait& waits) {
  return Ask(root, keeper::kCompact, kLongWork, progress, waits).status();
}

Result<RepairReport> AskToRepair(const std::string& root, const ArchiveProgress& progress,
                                 const OnWait& waits) {
  const auto answer = Ask(root, keeper::kRepair, kLongWork, progress, waits);
  return answer.ok() ? RepairFromJson(answer->more) : answer.status();
}

Result<Imported> AskToImport(const std::string& root, const std::string& path,
                             const ArchiveProgress& progress, const OnWait& waits) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return SystemError("open " + path);
  // For messages; a name with a newline in it would end the question.
  std::string shown = path.substr(0, keeper::kMaxQuestion / 2);
  std::replace(shown.begin(), shown.end(), '\n', '?');
  const auto answer =
      Ask(root, std::string(keeper::kImport) + shown, kLongWork, progress, waits, file.get());
  return answer.ok() ? ImportedFromText(answer->count, answer->more) : answer.status();
}

}  // namespace sonde
