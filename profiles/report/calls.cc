#include "profiles/report/calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "profiles/model/text.h"

namespace sonde {
namespace {

using text::Printable;
using text::Seconds;
using enum text::Table::Align;

constexpr size_t kMaxCallRows = 16;

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

// The sums over the series of one class.
struct Calls {
  double calls = std::numeric_limits<double>::quiet_NaN();
  double seconds = calls;
  double waiting = calls;  // part of the seconds
  double out = calls;      // bytes sent or written
  double in = calls;       // bytes received or read

  void Add(const Calls& other) {
    AddTo(calls, other.calls);
    AddTo(seconds, other.seconds);
    AddTo(waiting, other.waiting);
    AddTo(out, other.out);
    AddTo(in, other.in);
  }
};

struct Counted {
  std::string_view metric;
  double Calls::*sum;
};
constexpr std::array<Counted, 7> kMpi = {{{"mpi_calls_total", &Calls::calls},
                                          {"mpi_seconds_total", &Calls::seconds},
                                          {"mpi_wait_seconds_total", &Calls::waiting},
                                          {"mpi_sent_bytes_total", &Calls::out},
                                          {"mpi_received_bytes_total", &Calls::in},
                                          {"mpi_io_written_bytes_total", &Calls::out},
                                          {"mpi_io_read_bytes_total", &Calls::in}}};
constexpr std::array<Counted, 4> kFiles = {{{"io_calls_total", &Calls::calls},
                                            {"io_seconds_total", &Calls::seconds},
                                            {"io_written_bytes_total", &Calls::out},
                                            {"io_read_bytes_total", &Calls::in}}};
constexpr std::array<std::string_view, 3> kSizes = {"mpi_message_bytes", "mpi_io_write_bytes",
                                                    "io_size_bytes"};

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
  std::map<size_t, Calls> operations;  // by their places
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
    if (counted->sum == &Calls::seconds) one->seconds += entry.last;
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
  return name == kMpiShare && series.tags.empty();
}

std::string MpiTable(const Profile& profile, double task_seconds, size_t width) {
  std::map<std::string_view, Calls> classes;
  Calls all;
  for (const FootprintEntry& entry : profile.footprint) {
    const Counted* const counted = Find(kMpi, entry.series.metric.name);
    if (counted == nullptr || !CountsCalls(entry.series)) continue;
    AddTo(classes[TagOf(entry.series, "class")].*counted->sum, entry.last);
    AddTo(all.*counted->sum, entry.last);
  }
  text::Table table({{"MPI", kLeft, true},
                     {"calls", kRight},
                     {"time", kRight},
                     {"share", kRight},
                     {"waiting", kRight},
                     {"sent", kRight},
                     {"received", kRight, false, true}});
  size_t rows = 0;
  const auto row = [&](std::string_view name, const Calls& sum) {
    if (!(sum.calls > 0)) return;
    table.Row({std::string(name), text::Number(sum.calls), Seconds(sum.seconds),
               text::Percent(sum.seconds / task_seconds), Seconds(sum.waiting),
               text::Bytes(sum.out), text::Bytes(sum.in)});
    ++rows;
  };
  for (const auto& [kind, name] : kMpiClasses) row(name, classes[kind]);
  // Not their bytes: the bytes of messages and of files do not add up.
  all.out = all.in = std::nan("");
  if (rows > 1) row("all", all);
  return rows == 0 ? "" : table.Render("", width);
}

std::string FileTable(const Profile& profile, double task_seconds, size_t width) {
  text::Table table({{"files on", kLeft, true},
                     {"", kLeft},
                     {"calls", kRight},
                     {"bytes", kRight},
                     {"median", kRight, false, true},
                     {"time", kRight},
                     {"share", kRight}});
  size_t rows = 0;
  for (const Filesystem& one : Filesystems(profile)) {
    bool first = true;
    for (const auto& [place, sum] : one.operations) {
      if (++rows > kMaxCallRows) continue;
      const auto sizes = one.sizes.find(place);
      Calls moved = sum;
      AddTo(moved.in, sum.out);
      const bool known = place < kOperations.size();
      table.Row({std::exchange(first, false) ? Printable(one.name) : "",
                 known ? std::string(kOperations[place].second) : "other", text::Number(sum.calls),
                 text::Bytes(moved.in),
                 text::Bytes(sizes == one.sizes.end() ? std::nan("") : sizes->second.Quantile(0.5)),
                 Seconds(sum.seconds), text::Percent(sum.seconds / task_seconds)});
    }
  }
  if (rows == 0) return "";
  std::string out = table.Render("", width);
  if (rows > kMaxCallRows) {
    out += fmt::format("  and {} rows more; all with --json\n", rows - kMaxCallRows);
  }
  return out;
}

}  // namespace sonde
