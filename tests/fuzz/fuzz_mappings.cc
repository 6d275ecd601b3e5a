// Lines of /proc/self/maps as libsonde_functions reads them, and names as tags.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/text/names.h"
#include "core/text/tag_text.h"
#include "libclient/functions/mappings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde;
  using namespace sonde::functions;
  const char* const line = reinterpret_cast<const char*>(data);
  TagText text;
  PutTagText({line, size}, text);
  if (!sonde::names::IsTagValue(text)) abort();
  PutPlace({line, size}, size, text);
  if (!sonde::names::IsTagValue(text)) abort();
  Mapping mapping;
  if (!ParseMapping(line, size, &mapping)) return 0;
  if (mapping.path < line || mapping.path + mapping.path_size > line + size) abort();
  return 0;
}
