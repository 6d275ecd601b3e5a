#include "profiles/records/keys.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "core/text/hash.h"

namespace sonde::keys {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
constexpr std::string_view kHex = "0123456789ABCDEF";
constexpr size_t kTimeSize = 8;

// Big-endian, so that the order of keys is the order of numbers.
template <typename T>
void Append(std::string& out, T value) {
  for (int shift = 8 * (sizeof(T) - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift));
  }
}

template <typename T>
T Number(std::string_view bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value << 8) | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

std::string Escape(std::string_view text) {
  if (text.empty()) return "%";
  std::string out;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return out;
}

std::optional<std::string> Unescape(std::string_view text) {
  if (text == "%") return "";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const size_t high = kHex.find(text[i + 1]);
    const size_t low = kHex.find(text[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    out.push_back(static_cast<char>(high << 4 | low));
    i += 2;
  }
  return out;
}

std::string Of(char kind, std::string_view profile) {
  std::string key(1, kind);
  key.append(profile).push_back('\0');
  return key;
}

// Later starts come first.
uint64_t Descending(Nanos start) { return ~static_cast<uint64_t>(start); }

}  // namespace

std::string ProfileKey(const JobDescription& job) {
  return Escape(job.cluster) + "." + Escape(job.id.job) + "." + Escape(job.id.step) + "." +
         std::to_string(job.start);
}

std::string_view KeyOfName(std::string_view name) { return name.substr(0, name.find('~')); }

std::optional<JobDescription> DescribeKey(std::string_view profile) {
  std::array<std::string_view, 4> parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t dot = profile.find('.');
    if ((dot == std::string_view::npos) != (i + 1 == parts.size())) return std::nullopt;
    parts[i] = profile.substr(0, dot);
    profile.remove_prefix(dot == std::string_view::npos ? profile.size() : dot + 1);
  }
  const auto cluster = Unescape(parts[0]);
  const auto id = Unescape(parts[1]);
  const auto step = Unescape(parts[2]);
  JobDescription job;
  const char* end = parts[3].data() + parts[3].size();
  const auto parsed = std::from_chars(parts[3].data(), end, job.start);
  if (!cluster || !id || !step || parsed.ec != std::errc() || parsed.ptr != end || job.start < 0) {
    return std::nullopt;
  }
  job.cluster = *cluster;
  job.id = {*id, *step};
  return job;
}

std::string Description(std::string_view profile) { return Of('d', profile); }
std::string Profile(std::string_view profile) { return Of('p', profile); }
std::string Moments(std::string_view profile) { return Of('m', profile); }
std::string Finished(std::string_view profile) { return Of('z', profile); }

std::string Writer(std::string_view profile) { return Of('w', profile); }
std::string Parts(std::string_view profile) { return Of('q', profile); }
std::string Part(std::string_view profile, std::string_view id) {
  return Parts(profile).append(id);
}

std::string BlockCount(std::string_view profile) { return Of('n', profile); }

std::string Owed(std::string_view profile) { return Of(kOwedKind, profile); }

bool IsKnownKind(char kind) {
  return std::string_view("FIabdijmnopqstwz").find(kind) != std::string_view::npos;
}

std::optional<OtherRecord> ParseOther(std::string_view key) {
  const size_t end = key.find('\0');
  if (end == std::string_view::npos || end == 0 || IsKnownKind(key[0])) return std::nullopt;
  const std::string_view profile = key.substr(1, end - 1);
  if (!DescribeKey(profile)) return std::nullopt;
  return OtherRecord{key[0], profile, key.substr(end + 1)};
}

std::string Joined(std::string_view profile) { return Of(kJoinedKind, profile).append("b"); }

std::string Joined(std::string_view profile, std::string_view bytes) {
  std::string key = Joined(profile);
  Append(key, Fnv1a64(bytes));
  return key;
}

std::string JoinedSchema(std::string_view profile, uint64_t id) {
  std::string key = Of(kJoinedKind, profile).append("s");
  Append(key, id);
  return key;
}

std::string Other(char kind, std::string_view profile, std::string_view rest) {
  return Of(kind, profile).append(rest);
}

std::string Schema(uint64_t id) {
  std::string key(1, kSchemaKind);
  Append(key, id);
  return key;
}

std::optional<uint64_t> ParseSchema(std::string_view key) {
  if (key.size() != 1 + sizeof(uint64_t) || key[0] != kSchemaKind) return std::nullopt;
  return Number<uint64_t>(key.substr(1));
}

std::string Blocks(std::string_view profile) { return Of('b', profile); }

std::string Block(std::string_view profile, const BlockKey& block) {
  std::string key = Blocks(profile);
  Append(key, block.node);
  key.append(block.group).push_back('\0');
  Append(key, block.sequence);
  return key;
}

std::optional<BlockKey> ParseBlock(std::string_view profile, std::string_view key) {
  const std::string prefix = Blocks(profile);
  constexpr size_t kFixed = sizeof(uint32_t) + 1 + sizeof(uint64_t);
  if (!key.starts_with(prefix) || key.size() < prefix.size() + kFixed) return std::nullopt;
  key.remove_prefix(prefix.size());
  BlockKey block;
  block.node = Number<uint32_t>(key);
  key.remove_prefix(sizeof(uint32_t));
  const std::string_view group = key.substr(0, key.size() - sizeof(uint64_t) - 1);
  if (key[group.size()] != '\0' || group.find('\0') != std::string_view::npos) return std::nullopt;
  block.group = group;
  block.sequence = Number<uint64_t>(key.substr(group.size() + 1));
  return block;
}

std::string ByTime(const JobDescription& job) {
  std::string key(kByTime);
  Append(key, Descending(job.start));
  return key + ProfileKey(job);
}

std::string ByTimeFrom(Nanos start) {
  std::string key(kByTime);
  Append(key, Descending(start));
  return key;
}

std::string ByTermPrefix(Term kind) { return {'i', static_cast<char>(kind)}; }

std::string ByTermPrefix(Term kind, std::string_view term) {
  std::string key = ByTermPrefix(kind);
  key.append(term.substr(0, std::min(term.find('\0'), kMaxTerm))).push_back('\0');
  return key;
}

std::string ByTerm(Term kind, std::string_view term, const JobDescription& job) {
  std::string key = ByTermPrefix(kind, term);
  Append(key, Descending(job.start));
  return key + ProfileKey(job);
}

std::optional<TermEntry> ParseTerm(std::string_view key) {
  constexpr size_t kKind = 2;
  const size_t end = key.find('\0');
  if (!key.starts_with('i') || end == std::string_view::npos || end < kKind ||
      key.size() < end + 1 + kTimeSize) {
    return std::nullopt;
  }
  return TermEntry{key.substr(kKind, end - kKind), key.substr(end + 1),
                   key.substr(end + 1 + kTimeSize)};
}

std::string ByTimeOfSuffix(std::string_view suffix) { return std::string(kByTime).append(suffix); }

std::string Totals(std::string_view user) {
  std::string key = std::string(kTotals) + Escape(user);
  key.push_back('\0');
  return key;
}

std::optional<std::string> UserOfTotals(std::string_view key) {
  if (key.size() < kTotals.size() + 2 || key.back() != '\0') return std::nullopt;
  return Unescape(key.substr(kTotals.size(), key.size() - kTotals.size() - 1));
}

std::string ByJobPrefix(const JobStep& id) {
  std::string key = "j" + Escape(id.job);
  key.push_back('\0');
  if (!id.step.empty()) {
    key.append(Escape(id.step)).push_back('\0');
  }
  return key;
}

std::string ByJob(std::string_view id, const JobDescription& job) {
  std::string key = "j" + Escape(id);
  key.push_back('\0');
  key.append(Escape(job.id.step)).push_back('\0');
  Append(key, Descending(job.start));
  return key + ProfileKey(job);
}

std::string_view ProfileOfTimeIndex(std::string_view key) {
  return key.size() < 1 + kTimeSize ? std::string_view{} : key.substr(1 + kTimeSize);
}

Nanos StartOfTimeIndex(std::string_view key) {
  if (key.size() < 1 + kTimeSize) return 0;
  return static_cast<Nanos>(Descending(static_cast<Nanos>(Number<uint64_t>(key.substr(1)))));
}

std::string_view ProfileOfJobIndex(std::string_view key) {
  // Two names that end in a zero byte, then the time.
  const size_t job = key.find('\0');
  const size_t step = job == std::string_view::npos ? job : key.find('\0', job + 1);
  if (step == std::string_view::npos || key.size() < step + 1 + kTimeSize) return {};
  return key.substr(step + 1 + kTimeSize);
}

}  // namespace sonde::keys
