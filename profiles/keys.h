// Keys of the archive's LevelDB databases, specified in docs/archive.md. Written to disk: a format
// that changes gets a new number in kFormat.
//
// The database of a running step and the one of finished steps use the same keys, so ingesting is
// copying. A profile's own key names its step and its start; no key of it is a prefix of another's.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/job.h"
#include "profiles/archive.h"

namespace sonde::keys {

inline constexpr std::string_view kFormatKey = "F";
inline constexpr std::string_view kFormat = "sonde archive 1";
inline constexpr std::string_view kFormatStem = "sonde archive ";  // a number follows

// cluster.job.step.start, every part escaped so that it holds only letters, digits, '_', '-' and
// '%'. Also the name of a live directory, where "~2" and so on may follow.
std::string ProfileKey(const JobDescription& job);
// The profile key in the name of a live directory.
std::string_view KeyOfName(std::string_view name);
// What can be learnt from the key alone: cluster, id and start.
std::optional<JobDescription> DescribeKey(std::string_view profile);

std::string Description(std::string_view profile);
std::string Profile(std::string_view profile);
std::string Moments(std::string_view profile);
std::string Finished(std::string_view profile);
// In live/: who writes it, a PartId. In db/: what each part says, its id after the prefix.
std::string Writer(std::string_view profile);
std::string Parts(std::string_view profile);
std::string Part(std::string_view profile, std::string_view id);
// In db/: how many blocks the profile has, a decimal number.
std::string BlockCount(std::string_view profile);
std::string Schema(uint64_t id);
inline constexpr char kSchemaKind = 's';
std::optional<uint64_t> ParseSchema(std::string_view key);

// Prefix of all blocks, of those of one node, and one block's key.
std::string Blocks(std::string_view profile);
std::string Block(std::string_view profile, const BlockKey& block);
std::optional<BlockKey> ParseBlock(std::string_view profile, std::string_view key);

// Indexes, newest first; their values are empty, their keys end in the profile's key.
std::string ByTime(const JobDescription& job);
inline constexpr std::string_view kByTime = "t";
std::string ByJob(const JobDescription& job);
// Prefix in the index of a job (id.step empty) or a step.
std::string ByJobPrefix(const JobStep& id);
std::string_view ProfileOfTimeIndex(std::string_view key);
std::string_view ProfileOfJobIndex(std::string_view key);

}  // namespace sonde::keys
