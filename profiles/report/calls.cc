#include "profiles/report/calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <vector>

namespace sonde {
namespace {

// Kinds of /proc/filesystems that hold no data. Not tmpfs and ramfs: users put files there.
constexpr std::array<std::string_view, 24> kPseudo = {
    "autofs",     "binder",  "binfmt_misc", "bpf",       "cgroup",   "cgroup2",
    "configfs",   "cpuset",  "debugfs",     "devpts",    "devtmpfs", "efivarfs",
    "fusectl",    "mqueue",  "nfsd",        "nsfs",      "proc",     "pstore",
    "rpc_pipefs", "resctrl", "securityfs",  "selinuxfs", "sysfs",    "tracefs"};

// A sum that is NaN until the first value is added.
void AddTo(double& sum, double value) {
  if (std::isnan(value)) return;
  sum = std::isnan(sum) ? value : sum + value;
}

struct Counted {
  std::string_view metric;
  double CallRow::*sum;
};
constexpr std::array<Counted, 7> kMpi = {{{"mpi_calls_total", &CallRow::calls},
                                          {"mpi_seconds_total", &CallRow::seconds},
                                          {"mpi_wait_seconds_total", &CallRow::waiting},
                                          {"mpi_sent_bytes_total", &CallRow::out},
                                          {"mpi_received_bytes_total", &CallRow::in},
                                          {"mpi_io_written_bytes_total", &CallRow::out},
                                          {"mpi_io_read_bytes_total", &CallRow::in}}};
constexpr std::array<Counted, 4> kFiles = {{{"io_calls_total", &CallRow::calls},
                                            {"io_seconds_total", &CallRow::seconds},
                                            {"io_written_bytes_total", &CallRow::out},
                                            {"io_read_bytes_total", &CallRow::in}}};
constexpr std::array<Counted, 2> kFunctions = {
    {{"function_calls_total", &CallRow::calls}, {"function_seconds_total", &CallRow::seconds}}};
constexpr std::array<std::string_view, 3> kSizes = {"mpi_message_bytes", "mpi_io_write_bytes",
                                                    "io_size_bytes"};

// With the rank in the tag "peer".
constexpr std::string_view kPeerWaits = "mpi_peer_wait_seconds_total";

// Of all tasks, since MPI_Init; the table shows the ratio to the whole step.
constexpr std::string_view kMpiShare = "mpi_time_ratio";

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kMpiClasses = {
    {{"p2p", "point-to-point"},
     {"collective", "collective"},
     {"wait", "wait, probe"},
     {"one_sided", "one-sided"},
     {"io", "MPI-IO"},
     {"other", "other"}}};

// In the order of their rows; operations of one row have one name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kOperations = {
    {{"read", "read"},
     {"write", "write"},
     {"open", "open, close"},
     {"close", "open, close"},
     {"sync", "sync"},
     {"seek", "seek"},
     {"metadata", "metadata"}}};

const std::string& TagOf(const Series& series, std::string_view key) {
  static const std::string none;
  const std::string* const value = series.tags.Find(key);
  return value == nullptr ? none : *value;
}

const Counted* Find(std::span<const Counted> all, std::string_view metric) {
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const Counted& counted) { return counted.metric == metric; });
  return at == all.end() ? nullptr : &*at;
}

// "mpi_message_bytes" for it and for the series of its ranks, such as mpi_message_bytes_p50.
bool IsSize(std::string_view metric) {
  return std::any_of(kSizes.begin(), kSizes.end(), [&](std::string_view name) {
    return metric.starts_with(name) && (metric.size() == name.size() || metric[name.size()] == '_');
  });
}

// The operation of a series of files. Moved bytes have no tag for it.
std::string_view OperationOf(const Series& series) {
  if (series.metric.name == "io_read_bytes_total") return "read";
  if (series.metric.name == "io_written_bytes_total") return "write";
  return TagOf(series, "operation");
}

size_t PlaceOf(std::string_view operation) {
  const auto at = std::find_if(kOperations.begin(), kOperations.end(),
                               [&](const auto& known) { return known.first == operation; });
  if (at == kOperations.end()) return kOperations.size();
  return at->second == "open, close" ? 2 : static_cast<size_t>(at - kOperations.begin());
}

// One filesystem and the calls to it.
struct Filesystem {
  std::string name;
  std::map<size_t, CallRow> operations;  // by their places
  std::map<size_t, Sketch> sizes;
  double seconds = 0;
};

std::vector<Filesystem> Filesystems(const Profile& profile) {
  std::map<std::string, Filesystem> found;
  const auto of = [&](const Series& series) -> Filesystem* {
    const std::string& kind = TagOf(series, "fstype");
    if (!CountsCalls(series) || IsPseudoFilesystem(kind)) return nullptr;
    std::string name = fmt::format("{} {}", kind, TagOf(series, "mountpoint"));
    Filesystem& one = found[name];
    one.name = std::move(name);
    return &one;
  };
  for (const FootprintEntry& entry : profile.footprint) {
    const Counted* const counted = Find(kFiles, entry.series.metric.name);
    if (counted == nullptr || !(entry.last > 0)) continue;
    Filesystem* const one = of(entry.series);
    if (one == nullptr) continue;
    AddTo(one->operations[PlaceOf(OperationOf(entry.series))].*counted->sum, entry.last);
    if (counted->sum == &CallRow::seconds) one->seconds += entry.last;
  }
  for (const NamedSketch& size : profile.moments.distributions) {
    if (size.series.metric.name != "io_size_bytes") continue;
    Filesystem* const one = of(size.series);
    if (one != nullptr) one->sizes[PlaceOf(OperationOf(size.series))].Merge(size.sketch);
  }
  std::vector<Filesystem> sorted;
  sorted.reserve(found.size());
  for (auto& [name, one] : found) sorted.push_back(std::move(one));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Filesystem& a, const Filesystem& b) { return a.seconds > b.seconds; });
  return sorted;
}

// Those with most time first; if nobody timed them, those with most calls.
std::vector<CallRow> Sorted(const std::map<std::string, CallRow>& by_name) {
  std::vector<CallRow> sorted;
  for (const auto& [name, row] : by_name) {
    if (!(row.calls > 0)) continue;
    sorted.push_back(row);
    sorted.back().name = name;
  }
  // Either all functions are timed or none is, in a process.
  const auto most = [](const CallRow& one) {
    return std::pair(std::isnan(one.seconds) ? 0 : one.seconds, one.calls);
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const CallRow& a, const CallRow& b) { return most(a) > most(b); });
  return sorted;
}

}  // namespace

bool IsPseudoFilesystem(std::string_view kind) {
  return std::find(kPseudo.begin(), kPseudo.end(), kind) != kPseudo.end();
}

bool CountsCalls(const Series& series) {
  const std::string& name = series.metric.name;
  if (series.tags.Find("class") != nullptr) {
    return Find(kMpi, name) != nullptr || (name.starts_with("mpi_") && IsSize(name));
  }
  if (series.tags.Find("fstype") != nullptr && series.tags.Find("api") != nullptr) {
    return Find(kFiles, name) != nullptr || (name.starts_with("io_") && IsSize(name));
  }
  if (series.tags.Find("peer") != nullptr) return name == kPeerWaits;
  if (series.tags.Find("function") != nullptr) return Find(kFunctions, name) != nullptr;
  return name == kMpiShare && series.tags.empty();
}

double CallRow::Moved() const {
  double moved = in;
  AddTo(moved, out);
  return moved;
}

CallRow AllOf(const std::vector<CallRow>& rows) {
  CallRow all;
  all.name = "all";
  for (const CallRow& one : rows) {
    AddTo(all.calls, one.calls);
    AddTo(all.seconds, one.seconds);
    AddTo(all.waiting, one.waiting);
  }
  return all;
}

std::vector<CallRow> MpiClasses(const Profile& profile) {
  std::map<std::string_view, CallRow> classes;
  for (const FootprintEntry& entry : profile.footprint) {
    const Counted* const counted = Find(kMpi, entry.series.metric.name);
    if (counted == nullptr || !CountsCalls(entry.series)) continue;
    AddTo(classes[TagOf(entry.series, "class")].*counted->sum, entry.last);
  }
  std::vector<CallRow> rows;
  for (const auto& [kind, name] : kMpiClasses) {
    const auto at = classes.find(kind);
    if (at == classes.end() || !(at->second.calls > 0)) continue;
    rows.push_back(at->second);
    rows.back().name = name;
  }
  return rows;
}

std::vector<CallRow> MpiFunctions(const Profile& profile) {
  std::map<std::string, CallRow> functions;
  for (const FootprintEntry& entry : profile.footprint) {
    const Counted* const counted = Find(kMpi, entry.series.metric.name);
    const std::string& name = TagOf(entry.series, "function");
    if (counted == nullptr || name.empty() || !CountsCalls(entry.series)) continue;
    AddTo(functions[name].*counted->sum, entry.last);
  }
  return Sorted(functions);
}

std::vector<CallRow> FileCalls(const Profile& profile) {
  std::vector<CallRow> rows;
  for (const Filesystem& one : Filesystems(profile)) {
    for (const auto& [place, sum] : one.operations) {
      CallRow& row = rows.emplace_back(sum);
      row.name = one.name;
      row.operation = place < kOperations.size() ? kOperations[place].second : "other";
      const auto sizes = one.sizes.find(place);
      if (sizes != one.sizes.end()) row.median = sizes->second.Quantile(0.5);
    }
  }
  return rows;
}

std::vector<CallRow> FunctionCalls(const Profile& profile) {
  std::map<std::string, CallRow> functions;
  for (const FootprintEntry& entry : profile.footprint) {
    const Counted* const counted = Find(kFunctions, entry.series.metric.name);
    if (counted == nullptr || !CountsCalls(entry.series)) continue;
    std::string name = TagOf(entry.series, "function");
    const std::string& object = TagOf(entry.series, "object");
    if (!object.empty()) name += " (" + object + ")";
    AddTo(functions[name].*counted->sum, entry.last);
  }
  return Sorted(functions);
}

CallTimes TimesOfCalls(const Profile& profile) {
  CallTimes times;
  times.mpi = times.mpi_waits = times.files = std::nan("");
  for (const FootprintEntry& entry : profile.footprint) {
    if (!CountsCalls(entry.series)) continue;
    const std::string& name = entry.series.metric.name;
    if (name == "mpi_seconds_total") AddTo(times.mpi, entry.last);
    if (name == "mpi_wait_seconds_total") AddTo(times.mpi_waits, entry.last);
  }
  for (const Filesystem& one : Filesystems(profile)) AddTo(times.files, one.seconds);
  return times;
}

std::map<uint32_t, double> AwaitedInReceives(const Profile& profile) {
  std::map<uint32_t, double> awaited;
  for (const FootprintEntry& entry : profile.footprint) {
    if (entry.series.metric.name != kPeerWaits || !(entry.last > 0)) continue;
    const std::string& peer = TagOf(entry.series, "peer");
    uint32_t rank = 0;
    const char* const end = peer.data() + peer.size();
    const auto [read, error] = std::from_chars(peer.data(), end, rank);
    if (error == std::errc() && read == end) awaited[rank] += entry.last;
  }
  return awaited;
}

}  // namespace sonde
