#include "core/text/hostlist.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string_view>

namespace sonde {
namespace {

constexpr size_t kMaxDigits = 9;
constexpr size_t kShortList = 40;  // bytes: half a line of a terminal

struct Family {
  std::string_view prefix;
  size_t width = 0;  // of the number; 0: the name has none
  std::vector<uint32_t> numbers;
};

size_t CountDigits(std::string_view name) {
  size_t n = 0;
  while (n < name.size() && n < kMaxDigits && name[name.size() - 1 - n] >= '0' &&
         name[name.size() - 1 - n] <= '9') {
    ++n;
  }
  return n;
}

// "1-3,7"
std::string Ranges(const Family& family) {
  std::string out;
  for (size_t i = 0; i < family.numbers.size();) {
    size_t last = i;
    while (last + 1 < family.numbers.size() &&
           family.numbers[last + 1] == family.numbers[last] + 1) {
      ++last;
    }
    if (!out.empty()) out += ',';
    out += fmt::format("{:0{}}", family.numbers[i], family.width);
    if (last > i) out += fmt::format("-{:0{}}", family.numbers[last], family.width);
    i = last + 1;
  }
  return out;
}

}  // namespace

std::string CompressHosts(const std::vector<std::string>& hosts) {
  std::vector<Family> families;
  std::map<std::pair<std::string_view, size_t>, size_t> index;
  for (const std::string& host : hosts) {
    const size_t width = CountDigits(host);
    const std::string_view prefix = std::string_view(host).substr(0, host.size() - width);
    const auto [at, added] = index.try_emplace({prefix, width}, families.size());
    if (added) families.push_back({prefix, width, {}});
    if (width > 0) {
      families[at->second].numbers.push_back(
          static_cast<uint32_t>(std::strtoul(host.c_str() + host.size() - width, nullptr, 10)));
    }
  }
  std::string out;
  for (Family& family : families) {
    std::sort(family.numbers.begin(), family.numbers.end());
    family.numbers.erase(std::unique(family.numbers.begin(), family.numbers.end()),
                         family.numbers.end());
    if (!out.empty()) out += ',';
    out += family.prefix;
    if (family.width == 0) continue;
    const std::string ranges = Ranges(family);
    out += family.numbers.size() == 1 ? ranges : "[" + ranges + "]";
  }
  return out;
}

std::string NameHosts(const std::vector<std::string>& hosts) {
  std::string list = CompressHosts(hosts);
  return hosts.size() < 2 || list.size() <= kShortList ? list
                                                       : fmt::format("{} nodes", hosts.size());
}

}  // namespace sonde
