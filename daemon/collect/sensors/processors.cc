#include "daemon/collect/sensors/processors.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "daemon/collect/read/directory.h"

namespace sonde::collect {

std::vector<Processor> ListProcessors(const Roots& roots) {
  std::vector<Processor> processors;
  const std::string directory = roots.sys + "/devices/system/cpu";
  constexpr std::string_view kPrefix = "cpu";
  for (const std::string& name : ListDirectory(directory)) {
    if (!name.starts_with(kPrefix)) continue;
    Processor p{0, directory + "/" + name};
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, p.number);
    if (error == std::errc() && stop == end) processors.push_back(std::move(p));
  }
  return processors;
}

}  // namespace sonde::collect
