// Helpers for all code that reads a LevelDB: options with which it verifies checksums, and texts as
// its slices.
//
// Thread safety: functions without state.
#pragma once

#include <leveldb/options.h>
#include <leveldb/slice.h>

#include <string_view>

namespace sonde {

// For single records, which may be read again.
inline leveldb::ReadOptions CheckedRead() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}
// For many records that are read once, and should not push other records out of the cache.
inline leveldb::ReadOptions CheckedScan() {
  leveldb::ReadOptions options = CheckedRead();
  options.fill_cache = false;
  return options;
}

inline std::string_view View(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }
inline leveldb::Slice AsSlice(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace sonde
