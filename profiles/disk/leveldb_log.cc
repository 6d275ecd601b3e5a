#include "profiles/disk/leveldb_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "core/bytes.h"
#include "core/unique_fd.h"
#include "profiles/disk/archive_dir.h"
#include "series/block/format.h"

namespace sonde {
namespace {

// As in LevelDB's doc/log_format.md: checksum (4), length (2), type (1), all little-endian.
constexpr size_t kBlock = 32768;
constexpr size_t kHeader = 7;
constexpr size_t kTypeAt = 6;
constexpr unsigned char kLastType = 4;
constexpr size_t kMaxLog = 64u << 20;

uint32_t Fixed(std::string_view bytes, size_t size) {
  uint32_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

size_t LengthOf(std::string_view record) { return Fixed(record.substr(4), 2); }
unsigned char TypeOf(std::string_view record) {
  return static_cast<unsigned char>(record[kTypeAt]);
}

// LevelDB masks stored checksums, for checksums over bytes that hold some themselves.
uint32_t Masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8U; }

bool IsWhole(std::string_view record) {
  const size_t length = LengthOf(record);
  const unsigned char type = TypeOf(record);
  if (type == 0 || type > kLastType || length > record.size() - kHeader) return false;
  return Fixed(record, 4) == Masked(block_format::Crc32c(record.substr(kTypeAt, 1 + length)));
}

}  // namespace

Status CheckLog(std::string_view bytes) {
  if (bytes.empty()) return {};
  // LevelDB reports what is wrong with the blocks before the last one.
  const size_t last = (bytes.size() - 1) / kBlock * kBlock;
  std::string_view rest = bytes.substr(last);
  while (rest.size() >= kHeader) {
    const size_t length = LengthOf(rest);
    if (TypeOf(rest) == 0 && length == 0) return {};
    if (length > rest.size() - kHeader) break;
    rest.remove_prefix(kHeader + length);
  }
  while (rest.size() > kHeader) {
    rest.remove_prefix(1);
    if (rest.size() >= kHeader && IsWhole(rest)) {
      return {Code::kCorrupt, "the length of a record of its log is damaged, and others follow"};
    }
  }
  return {};
}

namespace {

// So many bytes at that place; kCorrupt if the file has fewer.
Result<std::string> ReadAt(int fd, const std::string& path, uint64_t at, size_t size) {
  std::string bytes(size, '\0');
  size_t got = 0;
  while (got < size) {
    const ssize_t n = ::pread(fd, bytes.data() + got, size - got, static_cast<off_t>(at + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read " + path);
    if (n == 0) return Status(Code::kCorrupt, path + " is too short");
    got += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace

// The footer, as in LevelDB's doc/table_format.md: where the metaindex and the index are, as two
// varints each. Behind a block stand its type and the checksum of both.
Status CheckTableIndex(const std::string& path) {
  constexpr size_t kFooter = 48;
  constexpr size_t kTrailer = 5;
  constexpr size_t kMostIndex = 16u << 20;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) return SystemError("open " + path);
  const auto size = static_cast<uint64_t>(info.st_size);
  const Status damaged(Code::kCorrupt, "the index of a table is damaged");
  if (size < kFooter) return damaged;
  const auto footer = ReadAt(fd.get(), path, size - kFooter, kFooter);
  if (!footer.ok()) return footer.status();
  ByteReader in(*footer);
  in.Varint();
  in.Varint();
  const uint64_t at = in.Varint();
  const uint64_t length = in.Varint();
  if (!in.ok() || length > kMostIndex || at > size || length + kTrailer > size - at) return damaged;
  const auto block = ReadAt(fd.get(), path, at, length + kTrailer);
  if (!block.ok()) return block.status();
  const std::string_view all = *block;
  const bool whole =
      Fixed(all.substr(length + 1), 4) == Masked(block_format::Crc32c(all.substr(0, length + 1)));
  return whole ? Status() : damaged;
}

Status CheckLogs(const std::string& path) {
  const auto names = ListNames(path);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (!name.ends_with(".log") && !name.starts_with("MANIFEST-")) continue;
    const auto bytes = ReadSmallFile(path + "/" + name, kMaxLog);
    // LevelDB alone deals with a file that is deleted meanwhile, or is too long.
    if (!bytes.ok()) continue;
    SONDE_RETURN_IF_ERROR(CheckLog(*bytes).Within("read " + path + "/" + name));
  }
  return {};
}

}  // namespace sonde
