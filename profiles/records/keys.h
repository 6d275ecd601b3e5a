// Keys of the archive's LevelDB databases, specified in docs/archive.md. Written to disk: a format
// that changes gets a new number in kFormat.
//
// The database of a running step and the one of finished steps use the same keys, so ingesting is
// copying. A profile's own key names its step and its start; no key of it is a prefix of another's.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/job.h"
#include "profiles/model/block_key.h"

namespace sonde::keys {

inline constexpr std::string_view kFormatKey = "F";
inline constexpr std::string_view kFormat = "sonde archive 1";
inline constexpr std::string_view kFormatStem = "sonde archive ";  // a number follows

// cluster.job.step.start, every part escaped so that it holds only letters, digits, '_', '-' and
// '%'. Also the name of a live directory, where "~2" and so on may follow.
std::string ProfileKey(const JobDescription& job);
// The profile key in the name of a live directory.
std::string_view KeyOfName(std::string_view name);
// The parts of a profile that its key alone tells: cluster, id and start.
std::optional<JobDescription> DescribeKey(std::string_view profile);

std::string Description(std::string_view profile);
std::string Profile(std::string_view profile);
std::string Moments(std::string_view profile);
std::string Finished(std::string_view profile);
// In live/: its writer, a PartId. In db/: the record of each part, its id after the prefix.
std::string Writer(std::string_view profile);
std::string Parts(std::string_view profile);
std::string Part(std::string_view profile, std::string_view id);
// In db/: how many blocks the profile has, a decimal number.
std::string BlockCount(std::string_view profile);
// In db/, of a deleted profile: the room of its blocks is not given back yet (owed_room.h).
std::string Owed(std::string_view profile);
inline constexpr char kOwedKind = 'o';
// Whether this version knows records whose keys begin so. A later version's records of a profile
// have a kind of their own, the profile and a zero byte, and then whatever names them.
bool IsKnownKind(char kind);
// A key of such a record without the kind's meaning: the profile and the rest; none for known kinds
// and for records that belong to no profile.
struct OtherRecord {
  char kind = 0;
  std::string_view profile;
  std::string_view rest;
};
std::optional<OtherRecord> ParseOther(std::string_view key);
std::string Other(char kind, std::string_view profile, std::string_view rest = {});
// Blocks of many nodes in one record (series/block/joined.h), under the record's hash, and their
// schemas, which belong to this profile alone. Release 0.1 takes them for records of a later
// version: it copies and deletes them with the profile, and does not read them.
inline constexpr char kJoinedKind = 'J';
std::string Joined(std::string_view profile);  // prefix
std::string Joined(std::string_view profile, std::string_view bytes);
std::string JoinedSchema(std::string_view profile, uint64_t id);
std::string Schema(uint64_t id);
inline constexpr char kSchemaKind = 's';
std::optional<uint64_t> ParseSchema(std::string_view key);

// A block of another writer with the same node, group and sequence gets a part's number there. So
// the blocks of one part follow one another in time.
inline constexpr uint64_t kPartShift = 48;
// Prefix of all blocks, of those of one node, and one block's key.
std::string Blocks(std::string_view profile);
std::string Block(std::string_view profile, const BlockKey& block);
std::optional<BlockKey> ParseBlock(std::string_view profile, std::string_view key);

// Indexes, newest first; their keys end in the start's complement and the profile's key. The value
// is the profile's card (card.h) in the index by time, or empty where none was made yet, and empty
// in all others.
std::string ByTime(const JobDescription& job);
inline constexpr std::string_view kByTime = "t";
// The first key of the profiles that began at `start` or earlier.
std::string ByTimeFrom(Nanos start);
// Under the job's own id or another id that finds it (IdsOf in index.h).
std::string ByJob(std::string_view id, const JobDescription& job);
// Prefix in the index of a job (id.step empty) or a step.
std::string ByJobPrefix(const JobStep& id);

// Indexes by what profiles have in common. A profile may have several terms of one kind. A term is
// cut to kMaxTerm bytes, and ends before a zero byte.
enum class Term : char {
  kCommand = 'c',
  kHost = 'h',
  kName = 'n',
  kState = 'e',
  kTag = 'g',  // NAME=VALUE
};
inline constexpr size_t kMaxTerm = 128;
std::string ByTerm(Term kind, std::string_view term, const JobDescription& job);
std::string ByTermPrefix(Term kind);
std::string ByTermPrefix(Term kind, std::string_view term);
struct TermEntry {
  std::string_view term;
  std::string_view suffix;   // the start's complement and the profile's key
  std::string_view profile;  // the profile's key
};
std::optional<TermEntry> ParseTerm(std::string_view key);
// The key in the index by time of the profile whose entry in another index has this suffix.
std::string ByTimeOfSuffix(std::string_view suffix);

// The record that says that the indexes are complete, with their version.
inline constexpr std::string_view kIndexedKey = "I";
inline constexpr std::string_view kIndexed = "sonde index 2";
// Number and bytes of a user's profiles; of all users ("a" alone).
std::string Totals(std::string_view user);
inline constexpr std::string_view kTotals = "a";
// None if the key is that of all users.
std::optional<std::string> UserOfTotals(std::string_view key);

std::string_view ProfileOfTimeIndex(std::string_view key);
Nanos StartOfTimeIndex(std::string_view key);  // 0 if the key is too short
std::string_view ProfileOfJobIndex(std::string_view key);

}  // namespace sonde::keys
