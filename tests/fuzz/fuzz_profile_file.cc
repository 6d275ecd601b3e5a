// A profile's file as somebody sends it: as it is, and with checksums that are right, so that what
// stands behind them is looked at as well. What is accepted is written again just as it was.
//
// The corpus is what `sonde export --to FILE.sonde` wrote of small steps.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "core/bytes.h"
#include "profiles/records/profile_file.h"
#include "series/block/format.h"

namespace {

using namespace sonde;

// True if the records make a profile; `again` gets them as the writer writes them.
bool Accepts(std::string_view bytes, std::string& again) {
  ProfileFileReader reader([&](char* buffer, size_t size) -> Result<size_t> {
    const size_t n = std::min(size, bytes.size());
    std::copy_n(bytes.data(), n, buffer);
    bytes.remove_prefix(n);
    return n;
  });
  ProfileFileCheck check;
  ProfileFileWriter writer([&](std::string_view text) {
    again += text;
    return Status();
  });
  for (;;) {
    const auto record = reader.Next();
    if (!record.ok()) return false;
    if (!*record) break;
    if (!check.Add(**record).ok() || !writer.Write(**record).ok()) return false;
  }
  return check.Finish().ok() && writer.End().ok();
}

uint32_t Sum(std::string_view bytes) { return block_format::Crc32c(bytes); }

// The same with every checksum made right, as far as records can be told.
std::string Mended(std::string file) {
  constexpr size_t kHead = 16;
  if (file.size() < kHead) return file;
  const auto put = [&](size_t at, uint32_t value) {
    std::memcpy(file.data() + at, &value, sizeof value);
  };
  put(12, Sum(std::string_view(file).substr(0, 12)));
  uint32_t chain = 0;
  uint32_t records = 0;
  for (size_t at = kHead; file.size() - at >= 9;) {
    uint32_t size = 0;
    std::memcpy(&size, file.data() + at + 1, sizeof size);
    if (size > file.size() - at - 9) break;
    if (file[at] == 'e' && size == 8) {
      put(at + 5, records);
      put(at + 9, chain);
    }
    const uint32_t sum = Sum(std::string_view(file).substr(at, 5 + size));
    put(at + 5 + size, sum);
    std::string both;
    ByteWriter w(both);
    w.Fixed(chain);
    w.Fixed(sum);
    chain = Sum(both);
    ++records;
    at += 9 + size;
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  std::string again;
  (void)Accepts(file, again);
  again.clear();
  if (!Accepts(Mended(file), again)) return 0;
  std::string third;
  if (!Accepts(again, third) || third != again) std::abort();
  return 0;
}
