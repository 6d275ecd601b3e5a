// Lines of mountinfo as the I/O interposer reads them, and what becomes of their texts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/text/names.h"
#include "libclient/io/mounts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char* line = reinterpret_cast<const char*>(data);
  sonde::io::MountLine mount;
  if (!sonde::io::ParseMountLine(line, size, &mount)) return 0;
  for (const std::string_view part : {std::string_view(mount.root, mount.root_size),
                                      std::string_view(mount.point, mount.point_size),
                                      std::string_view(mount.type, mount.type_size)}) {
    if (part.data() < line || part.data() + part.size() > line + size) abort();
    char text[129];
    sonde::io::DecodeMountText(part.data(), part.size(), text, sizeof(text));
    if (!sonde::names::IsTagValue(text)) abort();
  }
  return 0;
}
