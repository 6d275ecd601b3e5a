// What LevelDB does not tell of its logs and manifests.
//
// A record that is longer than the rest of its file is, for LevelDB, one that was being written
// when its writer died: it ends there and says nothing. When it is the length that was damaged, all
// records behind it are lost in silence, and gone for good once LevelDB has written the others
// elsewhere. What a writer left half written has nothing whole behind it, so a whole record there
// tells the two apart.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde {

// kCorrupt if records lie behind one that is longer than the rest of the bytes, which are a whole
// log or manifest. Whatever else is wrong with them LevelDB finds.
Status CheckLog(std::string_view bytes);
// All of a database's, which may be in use.
Status CheckLogs(const std::string& path);

}  // namespace sonde
