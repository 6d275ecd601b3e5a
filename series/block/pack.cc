#include "series/block/pack.h"

#include <fmt/core.h>
#include <zstd.h>

#include <new>

namespace sonde {
namespace {

constexpr int kCompression = 1;

}  // namespace

std::string Pack(std::string_view plain) {
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  const size_t size =
      ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), kCompression);
  if (ZSTD_isError(size)) throw std::bad_alloc();  // with room for the worst there is no other way
  packed.resize(size);
  packed.shrink_to_fit();
  return packed;
}

Result<std::string> Unpack(std::string_view packed, size_t limit, std::string_view what) {
  const unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > limit ||
      ZSTD_findFrameCompressedSize(packed.data(), packed.size()) != packed.size()) {
    return Status(Code::kCorrupt, fmt::format("read {}: it is no frame of a sensible size", what));
  }
  std::string plain(size, '\0');
  const size_t got = ZSTD_decompress(plain.data(), plain.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) || got != size) {
    return Status(Code::kCorrupt, fmt::format("read {}: its frame is damaged", what));
  }
  return plain;
}

}  // namespace sonde
