// An ELF file as libsonde_functions reads it: after an offset and an address, the file's bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "libclient/functions/elf_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using sonde::functions::FunctionIndex;
  static const int fd = memfd_create("fuzz_elf_symbols", MFD_CLOEXEC);
  static FunctionIndex index;
  static char room[FunctionIndex::kLongestName];
  uint64_t asked[2];
  if (size < sizeof(asked)) return 0;
  std::memcpy(asked, data, sizeof(asked));
  const std::string_view file(reinterpret_cast<const char*>(data) + sizeof(asked),
                              size - sizeof(asked));
  const auto bytes = static_cast<off_t>(file.size());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, file.data(), file.size(), 0) != bytes) abort();
  uint64_t address = asked[1];
  sonde::functions::FindAddress(file, asked[0], &address);
  if (!index.Read(fd) || index.size() > FunctionIndex::kMaxIndexed) abort();
  const std::string_view name = index.Find(fd, address, room);
  if (name.empty()) return 0;
  if (name.data() != room || name.size() >= sizeof(room)) abort();
  if (file.find(name) == std::string_view::npos) abort();
  return 0;
}
