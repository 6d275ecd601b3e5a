#include "core/text/hostlist.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
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

// The entries of a list: up to the next comma that is not between brackets.
std::string_view TakeEntry(std::string_view& rest) {
  size_t end = 0;
  for (bool inside = false; end < rest.size() && (inside || rest[end] != ','); ++end) {
    if (rest[end] == '[') inside = true;
    if (rest[end] == ']') inside = false;
  }
  const std::string_view entry = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return entry;
}

// One of the ranges between brackets, "001-003" or "7".
struct Range {
  uint32_t first = 0;
  uint32_t last = 0;
  size_t width = 0;
};

bool ParseHostNumber(std::string_view text, uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && text.size() <= kMaxDigits;
}

bool ParseRange(std::string_view text, Range& range) {
  const std::string_view first = text.substr(0, text.find('-'));
  range.width = first.size();
  if (!ParseHostNumber(first, range.first)) return false;
  range.last = range.first;
  return first.size() == text.size() ||
         (ParseHostNumber(text.substr(first.size() + 1), range.last) && range.first <= range.last);
}

// The names that begin with `prefix` and go on as `rest` says, behind `hosts`; false: that is no
// list.
bool ExpandName(const std::string& prefix, std::string_view rest, size_t most,
                std::vector<std::string>& hosts, int depth = 0) {
  constexpr int kMostRanges = 8;  // Slurm takes fewer in one name
  if (hosts.size() == most) return true;
  if (depth > kMostRanges) return false;
  const size_t open = rest.find('[');
  if (open == std::string_view::npos) {
    if (rest.find(']') != std::string_view::npos || prefix.size() + rest.size() == 0) return false;
    hosts.push_back(prefix + std::string(rest));
    return true;
  }
  const size_t close = rest.find(']');
  if (close == std::string_view::npos || close < open) return false;
  const std::string stem = prefix + std::string(rest.substr(0, open));
  std::string_view ranges = rest.substr(open + 1, close - open - 1);
  if (ranges.empty()) return false;
  while (!ranges.empty()) {
    Range range;
    const std::string_view text = ranges.substr(0, ranges.find(','));
    if (!ParseRange(text, range)) return false;
    ranges.remove_prefix(std::min(text.size() + 1, ranges.size()));
    for (uint32_t i = range.first; i <= range.last && hosts.size() < most; ++i) {
      const std::string name = stem + fmt::format("{:0{}}", i, range.width);
      if (!ExpandName(name, rest.substr(close + 1), most, hosts, depth + 1)) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> ExpandHosts(std::string_view list, size_t most) {
  std::vector<std::string> hosts;
  while (!list.empty() && hosts.size() < most) {
    if (!ExpandName("", TakeEntry(list), most, hosts)) return std::nullopt;
  }
  return hosts;
}

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
