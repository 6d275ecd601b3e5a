// Finds damage in logs and manifests that LevelDB does not report.
//
// If a record is longer than the rest of its file, LevelDB takes it for one that its writer was
// writing when it died: LevelDB stops there and reports nothing. If the length itself was damaged,
// all records behind it are lost in silence, and for good once LevelDB has written the other
// records elsewhere. Behind a half written record there is nothing whole, so a whole record there
// shows that the length was damaged.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde {

// kCorrupt if records follow one that is longer than the rest of the bytes, which are a whole log
// or manifest. LevelDB finds all other damage itself.
Status CheckLog(std::string_view bytes);
// kCorrupt if the index of the table at `path` fails its checksum.
Status CheckTableIndex(const std::string& path);
// Checks all logs and manifests of a database, which may be in use.
Status CheckLogs(const std::string& path);

}  // namespace sonde
