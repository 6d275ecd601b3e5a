// Joined blocks, as they come over links and lie in archives: whatever is accepted comes apart into
// blocks that join to the same again. The input is the length of the list of entries (2 bytes), the
// list, and the block; the list's checksum is put between them, so that the fuzzer gets past it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "series/block/format.h"
#include "series/block/joined.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (size < 2) return 0;
  const size_t length = std::min<size_t>(data[0] | data[1] << 8, size - 2);
  std::string bytes(input.substr(2, length));
  sonde::ByteWriter(bytes).Fixed(sonde::block_format::Crc32c(bytes));
  bytes += input.substr(2 + length);
  const auto joined = sonde::ReadJoined(bytes);
  if (!joined.ok()) return 0;
  const auto all = sonde::DecodeJoined(*joined);
  if (!all.ok()) return 0;
  sonde::BlockEncoder encoder;
  std::vector<std::string> blocks;
  for (size_t i = 0; i < joined->entries.size(); ++i) {
    auto block = sonde::BlockOfEntry(*joined, *all, i, encoder);
    if (!block.ok()) std::abort();
    blocks.push_back(*std::move(block));
  }
  const std::vector<std::string_view> views(blocks.begin(), blocks.end());
  const auto again = sonde::JoinBlocks(joined->entries, views, encoder);
  if (!again.ok()) std::abort();
  const auto back = sonde::ReadJoined(*again);
  if (!back.ok() || back->entries.size() != joined->entries.size()) std::abort();
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (back->entries[i].times != joined->entries[i].times) std::abort();
  }
  return 0;
}
