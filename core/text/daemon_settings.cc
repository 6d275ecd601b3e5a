#include "core/text/daemon_settings.h"

#include <charconv>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

namespace sonde {
namespace {

std::optional<uint64_t> NumberUpTo(std::string_view text, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) return std::nullopt;
  return value;
}

template <typename T>
bool SetNumber(std::string_view text, uint64_t most, T& out) {
  const std::optional<uint64_t> value = NumberUpTo(text, most);
  if (value) out = static_cast<T>(*value);
  return value.has_value();
}

// Below it a daemon does not start.
constexpr uint64_t kLeastMemory = 16u << 20;

// 0, or at least `least`.
bool SetMemory(std::string_view text, uint64_t least, uint64_t& out) {
  constexpr std::string_view kUnits = "KMG";
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const int shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<int>(unit) + 1);
  if (shift != 0) text.remove_suffix(1);
  const auto value = NumberUpTo(text, std::numeric_limits<uint64_t>::max() >> shift);
  if (!value || (*value != 0 && *value << shift < least)) return false;
  out = *value << shift;
  return true;
}

// "0-3,8", each number below 65536.
bool IsCpuList(std::string_view text) {
  constexpr uint64_t kMost = 65535;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const size_t dash = range.find('-');
    const auto first = NumberUpTo(range.substr(0, dash), kMost);
    const auto last =
        dash == std::string_view::npos ? first : NumberUpTo(range.substr(dash + 1), kMost);
    if (!first || !last || *last < *first) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
  return false;
}

bool SetCpus(std::string_view text, std::string& out) {
  if (!text.empty() && text != "specialized" && !IsCpuList(text)) return false;
  out = text;
  return true;
}

bool SetPerfEvents(std::string_view text, DaemonSettings::PerfEvents& out) {
  using enum DaemonSettings::PerfEvents;
  if (text != "follow" && text != "grant" && text != "never") return false;
  out = text == "follow" ? kFollow : text == "grant" ? kGrant : kNever;
  return true;
}

// Names as the kernel has them, such as fuse.sshfs, and patterns.
bool SetFilesystems(std::string_view text, std::string& out) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-*";
  for (std::string_view rest = text; !text.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view name = TrimLine(rest.substr(0, comma));
    if (name.empty() || name.find_first_not_of(kLetters) != std::string_view::npos) return false;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  out = text;
  return true;
}

struct DaemonKey {
  std::string_view name;
  std::string_view expected;
  bool (*set)(DaemonSettings&, std::string_view);
};

constexpr DaemonKey kDaemonKeys[] = {
    {"perf_events", "follow, grant or never",
     [](DaemonSettings& s, std::string_view v) { return SetPerfEvents(v, s.perf_events); }},
    {"daemon_cpus", "specialized, or a list of processors such as 0,64-65",
     [](DaemonSettings& s, std::string_view v) { return SetCpus(v, s.cpus); }},
    {"daemon_nice", "0 to 19",
     [](DaemonSettings& s, std::string_view v) { return SetNumber(v, 19, s.nice); }},
    {"daemon_memory", "0, or a size from 16M on such as 256M",
     [](DaemonSettings& s, std::string_view v) { return SetMemory(v, kLeastMemory, s.memory); }},
    {"daemon_oom_score", "0 to 1000",
     [](DaemonSettings& s, std::string_view v) { return SetNumber(v, 1000, s.oom_score); }},
    {"memory_allowance", "a size such as 64M; 0 for none",
     [](DaemonSettings& s, std::string_view v) { return SetMemory(v, 0, s.memory_allowance); }},
    {"max_heads", "a number; 0 for no limit",
     [](DaemonSettings& s, std::string_view v) { return SetNumber(v, 1'000'000, s.max_heads); }},
    {"ask_filesystems", "types of filesystems such as lustre, fuse.*",
     [](DaemonSettings& s, std::string_view v) { return SetFilesystems(v, s.ask_filesystems); }},
};

const DaemonKey* FindDaemonKey(std::string_view name) {
  for (const DaemonKey& key : kDaemonKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

}  // namespace

bool DaemonSettings::Takes(const Setting& line) { return FindDaemonKey(line.name) != nullptr; }

std::string DaemonSettings::Add(const Setting& line) {
  const DaemonKey* const key = FindDaemonKey(line.name);
  if (key == nullptr || !line.value) return "expected key = value";
  const uint32_t bit = 1u << (key - kDaemonKeys);
  if ((seen_ & bit) != 0) return std::string(key->name) + " is given twice";
  seen_ |= bit;
  if (key->set(*this, *line.value)) return "";
  return std::string(key->name) + " = " + std::string(line.value->substr(0, 128)) + ": expected " +
         std::string(key->expected);
}

}  // namespace sonde
