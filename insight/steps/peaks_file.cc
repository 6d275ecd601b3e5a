#include "insight/steps/peaks_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/text/printable.h"
#include "core/unique_fd.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/file_lock.h"
#include "profiles/json/fields.h"
#include "profiles/json/parse.h"
#include "profiles/json/writer.h"

namespace sonde::insight {
namespace {

constexpr int kVersion = 1;
constexpr double kMostPerSecond = 1e18;
constexpr double kMostBytes = 1e15;
constexpr uint32_t kMostCpus = 1 << 20;
constexpr uint32_t kMostMegahertz = 100'000;
constexpr size_t kMostName = 128;
constexpr Nanos kPatience = 10 * kSecond;

// A number that has to be there, above `low` and not above `high`.
void ReadRate(JsonFields& fields, std::string_view key, double low, double high, double& out) {
  out = std::nan("");
  fields.Read(key, out);
  if (!(out >= low && out <= high)) fields.Wrong(key, "a number in its range");
}

void ReadName(JsonFields& fields, std::string_view key, std::string& out) {
  fields.Read(key, out, kMostName);
  if (Printable(out) != out) fields.Wrong(key, "a text that can be printed");
}

Peaks ReadRates(JsonFields& fields, std::string_view key, std::string& error) {
  Peaks peaks;
  const boost::json::value* value = fields.Find(key);
  if (value == nullptr) {
    fields.Wrong(key, "an object");
    return peaks;
  }
  JsonFields rates(*value, error, key);
  ReadRate(rates, "bytes_per_second", 1, kMostPerSecond, peaks.bytes_per_second);
  ReadRate(rates, "double_flops", 1, kMostPerSecond, peaks.double_flops);
  ReadRate(rates, "single_flops", 1, kMostPerSecond, peaks.single_flops);
  return peaks;
}

NodePeaks OneFrom(const boost::json::value& value, std::string& error) {
  JsonFields fields(value, error, "peaks");
  NodePeaks one;
  fields.Read("model", one.type.model, kMaxProcessorModel);
  if (one.type.model.empty() || Printable(one.type.model) != one.type.model) {
    fields.Wrong("model", "the name of a processor");
  }
  fields.Read("cpus", one.type.cpus, 1U, kMostCpus);
  fields.Read("sockets", one.type.sockets, 0U, kMostCpus);
  fields.Read("megahertz", one.type.megahertz, 0U, kMostMegahertz);
  fields.Read("allowed", one.allowed, 1U, kMostCpus);
  if (one.type.cpus == 0) fields.Wrong("cpus", "a number of CPUs");
  if (one.allowed == 0 || one.allowed > one.type.cpus) {
    fields.Wrong("allowed", "some of the CPUs");
  }
  one.all = ReadRates(fields, "all", error);
  one.one = ReadRates(fields, "one", error);
  ReadName(fields, "vectors", one.vectors);
  ReadName(fields, "host", one.host);
  ReadRate(fields, "array_bytes", 0, kMostBytes, one.array_bytes);
  ReadRate(fields, "last_cache_bytes", 0, kMostBytes, one.last_cache_bytes);
  fields.Read("time", one.time, Nanos{0}, std::numeric_limits<Nanos>::max());
  return one;
}

void WriteRates(JsonWriter& json, std::string_view key, const Peaks& peaks) {
  json.Key(key).BeginObject().Field("bytes_per_second", peaks.bytes_per_second);
  json.Field("double_flops", peaks.double_flops).Field("single_flops", peaks.single_flops);
  json.EndObject();
}

bool SamePlace(const NodePeaks& a, const NodePeaks& b) {
  return a.type == b.type && a.allowed == b.allowed;
}

}  // namespace

Result<std::vector<NodePeaks>> PeaksFromJson(std::string_view json, std::string_view name) {
  const auto wrong = [&](std::string_view why) {
    return Status(Code::kCorrupt, fmt::format("{} has no peaks as `sonde peaks` writes them: {}; "
                                              "delete it and measure again",
                                              name, why));
  };
  if (json.size() > kMaxCacheBytes) return wrong("it is too large");
  const auto value = ParseJson(json, name);
  if (!value.ok()) return wrong(value.status().message());
  std::string error;
  JsonFields fields(*value, error, "it");
  int version = 0;
  fields.Read("version", version);
  if (error.empty() && version > kVersion) {
    return Status(Code::kUnsupported, fmt::format("{} was written by a later version", name));
  }
  if (version != kVersion) fields.Wrong("version", "1");
  const boost::json::array* list = fields.Array("peaks", kMaxCached);
  if (list == nullptr) {
    fields.Wrong("peaks", "a list");
    return wrong(error);
  }
  std::vector<NodePeaks> all;
  for (const boost::json::value& one : *list) all.push_back(OneFrom(one, error));
  if (!error.empty()) return wrong(error);
  return all;
}

std::string PeaksToJson(const std::vector<NodePeaks>& all) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("version", kVersion).Key("peaks").BeginArray();
  for (const NodePeaks& one : all) {
    json.BeginObject().Field("model", one.type.model).Field("cpus", one.type.cpus);
    json.Field("sockets", one.type.sockets).Field("megahertz", one.type.megahertz);
    json.Field("allowed", one.allowed).Field("vectors", one.vectors);
    WriteRates(json, "all", one.all);
    WriteRates(json, "one", one.one);
    json.Field("array_bytes", one.array_bytes).Field("last_cache_bytes", one.last_cache_bytes);
    json.Field("host", one.host).Field("time", one.time).EndObject();
  }
  json.EndArray().EndObject();
  out += "\n";
  return out;
}

Result<std::vector<NodePeaks>> ReadPeaks(const std::string& path) {
  const auto text = ReadSmallFile(path, kMaxCacheBytes);
  if (text.ok()) return PeaksFromJson(*text, path);
  if (text.status().code() == Code::kNotFound) return std::vector<NodePeaks>();
  return text.status();
}

Result<std::vector<NodePeaks>> ReadPeaks(std::span<const std::string> paths) {
  std::vector<NodePeaks> all;
  for (const std::string& path : paths) {
    auto some = ReadPeaks(path);
    if (!some.ok()) return some.status();
    for (NodePeaks& one : *some) all.push_back(std::move(one));
  }
  return all;
}

Status KeepPeaks(const std::string& path, const NodePeaks& peaks, bool for_all) {
  // Not the file itself, which is another one afterwards.
  const auto lock = FileLock::Acquire(path + ".lock", kPatience);
  if (!lock.ok()) return lock.status();
  auto all = ReadPeaks(path);
  if (!all.ok()) return all.status();
  std::erase_if(*all, [&](const NodePeaks& one) { return SamePlace(one, peaks); });
  if (all->size() >= kMaxCached) all->erase(all->begin());
  all->push_back(peaks);
  SONDE_RETURN_IF_ERROR(WriteFileAtomically(path, PeaksToJson(*all)));
  if (!for_all) return {};
  // Of the file itself: the name may be another one's by now.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0 || ::fchmod(file.get(), 0644) != 0) return SystemError("let all read " + path);
  return {};
}

const NodePeaks* FindPeaks(const std::vector<NodePeaks>& all, const ProcessorType& type,
                           uint32_t least_allowed) {
  const NodePeaks* found = nullptr;
  for (const NodePeaks& one : all) {
    if (one.type != type || one.allowed < least_allowed) continue;
    if (found == nullptr || one.allowed >= found->allowed) found = &one;
  }
  return found;
}

}  // namespace sonde::insight
