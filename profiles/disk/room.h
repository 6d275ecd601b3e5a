// Room on the disk: whether there is some for what is to be written, and a reserve of it for the
// work that makes room.
//
// Deleting needs room itself, to open db/ and for what LevelDB writes anew before it deletes what
// it stands for. Where there are limits, somebody's file may take all there is, and then they could
// not make any. So the file `db.reserve` takes some while there is plenty, and is emptied when an
// ingest finds none. As long as it is there, empty, it is filled again as soon as it fits.
//
// Thread safety: functions without state; the caller holds the archive's lock, or waits for it.
#pragma once

#include <cstdint>
#include <string>

#include "core/status.h"
#include "profiles/disk/archive_dir.h"

namespace sonde {

// Bytes of the files directly in a directory whose names have this in them.
uint64_t BytesIn(const std::string& path, std::string_view part_of_name = "");
// What LevelDB writes when db/ is opened: all logs as tables, and a manifest.
uint64_t RoomToOpen(const ArchivePaths& archive);
// Whether there is room for so much, also by the user's quota, which only who takes it sees. Where
// that cannot be asked for there is enough of it.
Status CheckRoom(const ArchivePaths& archive, uint64_t bytes);

// Enough to compact what is deleted: LevelDB writes at most its two upper levels anew in one go,
// each up to about 10 MiB, and what overlaps with a table of them.
inline constexpr uint64_t kReserve = 32u << 20;
// Takes the reserve if there is plenty of room or if it was taken before. Not on file systems that
// cannot set room aside.
void FillReserve(const ArchivePaths& archive);
// Whether there was one.
bool EmptyReserve(const ArchivePaths& archive);

}  // namespace sonde
