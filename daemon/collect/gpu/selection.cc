#include "daemon/collect/gpu/selection.h"

#include <algorithm>
#include <charconv>

namespace sonde::collect::gpu {
namespace {

constexpr size_t kMaxEntries = 256;

bool ParseNumber(std::string_view text, unsigned& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseRange(std::string_view text, std::pair<unsigned, unsigned>& range) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    return ParseNumber(text, range.first) && ParseNumber(text, range.second);
  }
  return ParseNumber(text.substr(0, dash), range.first) &&
         ParseNumber(text.substr(dash + 1), range.second);
}

// Level Zero's masks may name a part of a device: 1.0.
std::string_view WithoutPart(std::string_view text) {
  return text.starts_with("GPU-") || text.starts_with("MIG-") ? text
                                                              : text.substr(0, text.find('.'));
}

}  // namespace

Selection::Selection(std::string_view list) : all_(list.empty()) {
  while (!list.empty() && numbers_.size() + uuids_.size() < kMaxEntries) {
    const size_t comma = list.find(',');
    const std::string_view entry = WithoutPart(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    std::pair<unsigned, unsigned> range;
    if (ParseRange(entry, range)) {
      numbers_.push_back(range);
    } else if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) {
      uuids_.emplace_back(entry);
    }
  }
}

bool Selection::HasNumber(unsigned index) const {
  return std::any_of(numbers_.begin(), numbers_.end(), [&](const auto& range) {
    return range.first <= index && index <= range.second;
  });
}

}  // namespace sonde::collect::gpu
