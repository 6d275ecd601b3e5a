#include "profiles/records/stored_bytes.h"

#include <snappy-c.h>

#include <string>
#include <vector>

#include "profiles/records/card.h"
#include "profiles/records/index.h"

namespace sonde {

// LevelDB keeps what Snappy shrinks by less than an eighth as it is.
uint64_t BytesInDb(std::string_view value) {
  std::vector<char> compressed(snappy_max_compressed_length(value.size()));
  size_t size = compressed.size();
  if (snappy_compress(value.data(), value.size(), compressed.data(), &size) != SNAPPY_OK) {
    return value.size();
  }
  return size < value.size() - value.size() / 8 ? size : value.size();
}

double StoredBytes(uint64_t content, const Profile& profile, size_t parts) {
  const std::string json = ProfileToJson(profile);
  // Index entries lie in the order of their keys, so neighbours share much.
  std::string entries;
  for (const std::string& key : IndexKeys(profile.job)) entries += key;
  const uint64_t records = BytesInDb(json) * (1 + parts) +
                           BytesInDb(DescriptionToJson(profile.job)) + BytesInDb(entries) +
                           BytesInDb(MakeCard(profile, json.size()));
  return static_cast<double>(content + records);
}

}  // namespace sonde
