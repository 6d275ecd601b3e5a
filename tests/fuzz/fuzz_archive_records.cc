// Records of a damaged archive, LevelDB's logs and what answers at its socket. The first line is a
// key, the rest what stands there.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profiles/archive/keeper_socket.h"
#include "profiles/disk/leveldb_log.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/upkeep/import.h"
#include "profiles/upkeep/repair.h"
#include "profiles/upkeep/retention.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view key = text.substr(0, text.find('\n'));
  const std::string_view value = text.substr(std::min(key.size() + 1, text.size()));
  const Record record = ParseRecord(key);
  // What is taken as a profile's is named like one.
  if (!record.profile.empty() && !keys::DescribeKey(record.profile)) std::abort();
  (void)CheckRecord(key, value).ok();
  (void)CheckLog(text).ok();
  if (const auto line = keeper::ParseAnswerLine(text); line.ok()) {
    (void)ImportedFromText(line->count, line->more).ok();
  }
  (void)PruneFromJson(text).ok();
  (void)RepairFromJson(text).ok();
  (void)RetentionFromText(text).ok();
  return 0;
}
