// Room on the disk: whether there is enough for a write, and a reserve of room for the work that
// makes room.
//
// Deleting needs room itself, to open db/ and for the tables that LevelDB writes anew before it
// deletes the old ones. Where there are limits, other files may take all room, and then a prune
// could not make any. So the file `db.reserve` takes some while there is plenty, and is emptied
// when an ingest finds none. While the empty file exists, it is filled again as soon as it fits.
//
// Thread safety: functions without state; the caller holds the archive's lock, or waits for it.
#pragma once

#include <cstdint>
#include <string>

#include "core/status.h"
#include "profiles/disk/archive_dir.h"

namespace sonde {

// The bytes of the files directly in a directory whose names contain this text.
uint64_t BytesIn(const std::string& path, std::string_view part_of_name = "");
// The bytes that LevelDB writes when db/ is opened: all logs as tables, and a manifest.
uint64_t RoomToOpen(const ArchivePaths& archive);
// Whether there is room for so many bytes, also by the user's quota, which only taking the room
// shows. If the file system cannot be asked, there is enough room.
Status CheckRoom(const ArchivePaths& archive, uint64_t bytes);

// Enough to compact deleted records: LevelDB rewrites at most its two upper levels in one go, each
// up to about 10 MiB, and the tables that overlap with one of theirs.
inline constexpr uint64_t kReserve = 32u << 20;
// Takes the reserve if there is plenty of room or if it was taken before. Does nothing on file
// systems that cannot set room aside.
void FillReserve(const ArchivePaths& archive);
// Empties the reserve; whether it held any room.
bool EmptyReserve(const ArchivePaths& archive);

}  // namespace sonde
