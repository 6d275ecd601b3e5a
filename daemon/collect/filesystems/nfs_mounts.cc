// /proc/self/mountstats: how much is read and written over NFS, and how long servers take.
//
// Several mounts may be one filesystem of the kernel's, which counts for all of them together: in
// the totals each counts once, by the device number that mountinfo has for it.
//
// The file has lines for every mount and some hundred bytes for each procedure of one of NFS, so it
// is read at most once a second, and only once a minute while there is no such mount.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "daemon/collect/filesystems/filesystem_sources.h"
#include "daemon/collect/filesystems/nfs_mountstats.h"
#include "daemon/collect/read/mountinfo.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl NfsMountsCounter(std::string_view name, std::string_view unit, uint8_t level,
                                      std::string_view help) {
  return {name, unit, MetricType::kCounter, level, Reduction::kSum, help};
}

// Of all mounts together, in the order of the columns; those of operations follow, by operation.
constexpr MetricDecl kTotals[] = {
    NfsMountsCounter("node_nfs_application_read_bytes_total", "bytes", 2,
                     "Bytes programs read from files on NFS, from the page cache or not."),
    NfsMountsCounter("node_nfs_application_written_bytes_total", "bytes", 2,
                     "Bytes programs wrote to files on NFS."),
    NfsMountsCounter("node_nfs_server_read_bytes_total", "bytes", 2,
                     "Bytes read from NFS servers."),
    NfsMountsCounter("node_nfs_server_written_bytes_total", "bytes", 2,
                     "Bytes written to NFS servers."),
};
constexpr MetricDecl kNfsMountsOperations =
    NfsMountsCounter("node_nfs_operations_total", "1", 2,
                     "Calls to NFS servers. Tag operation (read, write, commit, metadata).");
constexpr MetricDecl kNfsMountsOperationSeconds =
    NfsMountsCounter("node_nfs_operation_seconds_total", "seconds", 2,
                     "Time they took together, from the request to its end. Tag operation.");

// Of one mount; the names are node_exporter's.
constexpr MetricDecl kMountBytes[] = {
    NfsMountsCounter("node_mountstats_nfs_read_bytes_total", "bytes", 4,
                     "Bytes programs read through the cache. Tag mountpoint."),
    NfsMountsCounter("node_mountstats_nfs_write_bytes_total", "bytes", 4,
                     "Bytes programs wrote through the cache. Tag mountpoint."),
    NfsMountsCounter("node_mountstats_nfs_direct_read_bytes_total", "bytes", 4,
                     "Bytes programs read past the cache (O_DIRECT). Tag mountpoint."),
    NfsMountsCounter("node_mountstats_nfs_direct_write_bytes_total", "bytes", 4,
                     "Bytes programs wrote past the cache (O_DIRECT). Tag mountpoint."),
    NfsMountsCounter("node_mountstats_nfs_total_read_bytes_total", "bytes", 4,
                     "Bytes read from the server. Tag mountpoint."),
    NfsMountsCounter("node_mountstats_nfs_total_write_bytes_total", "bytes", 4,
                     "Bytes written to the server. Tag mountpoint."),
};
static_assert(std::size(kMountBytes) == kNfsBytes);

struct CallField {
  double NfsCalls::*member;
  MetricDecl decl;
};
constexpr CallField kMountCalls[] = {
    {&NfsCalls::calls, NfsMountsCounter("node_mountstats_nfs_operations_requests_total", "1", 4,
                                        "Calls. Tags mountpoint, operation (read, write, commit, "
                                        "metadata).")},
    {&NfsCalls::sent,
     NfsMountsCounter("node_mountstats_nfs_operations_transmissions_total", "1", 4,
                      "Calls, as often as they were sent. Tags mountpoint, operation.")},
    {&NfsCalls::timeouts,
     NfsMountsCounter(
         "node_mountstats_nfs_operations_major_timeouts_total", "1", 4,
         "How often the server did not answer even after all retries. Tags mountpoint, "
         "operation.")},
    {&NfsCalls::bytes_sent,
     NfsMountsCounter("node_mountstats_nfs_operations_sent_bytes_total", "bytes", 4,
                      "Bytes sent for them, headers included. Tags mountpoint, operation.")},
    {&NfsCalls::bytes_received,
     NfsMountsCounter("node_mountstats_nfs_operations_received_bytes_total", "bytes", 4,
                      "Bytes received for them, headers included. Tags mountpoint, operation.")},
    {&NfsCalls::queue_seconds,
     NfsMountsCounter(
         "node_mountstats_nfs_operations_queue_time_seconds_total", "seconds", 4,
         "Time they waited together before they were sent. Tags mountpoint, operation.")},
    {&NfsCalls::answer_seconds,
     NfsMountsCounter("node_mountstats_nfs_operations_response_time_seconds_total", "seconds", 4,
                      "Time from there to the answers, together. Tags mountpoint, operation.")},
    {&NfsCalls::total_seconds,
     NfsMountsCounter("node_mountstats_nfs_operations_request_time_seconds_total", "seconds", 4,
                      "Time they took together, waiting included. Tags mountpoint, operation.")},
};

constexpr size_t kMountColumns = kNfsBytes + kNfsOperations * std::size(kMountCalls);
constexpr int kMountLevel = 4;
constexpr size_t kNfsMountsMostMounts = 64;  // with series of their own
constexpr Nanos kNfsMountsPeriod = kSecond;
constexpr Nanos kLookEvery = 60 * kSecond;

class NfsMountsSource final : public Source {
 public:
  NfsMountsSource(const Roots& roots, int level, ReadBuffer& buffer)
      : level_(level),
        buffer_(buffer),
        mountinfo_(roots.proc + "/self/mountinfo", Shape::kRecords, 8192),
        mountstats_(roots.proc + "/self/mountstats", Shape::kRecords, 8192) {}

  std::string_view name() const override { return "nfs_mounts"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return true; }
  void Sample(Nanos now) override {
    if (now < read_at_) return;
    const std::string_view text = mountstats_.Read(buffer_, now);
    if (!text.ends_with('\n')) {  // nothing, or cut short
      std::fill(values_.begin(), values_.end(), kMissing);
    } else if (!Take(text)) {
      Rescan(text, now);
      Take(text);
    }
    read_at_ = now + (mounts_.empty() ? kLookEvery : kNfsMountsPeriod);
  }

 private:
  struct Mount {
    std::string device;
    std::string point;
    bool counted = false;  // in the totals
    bool shown = false;    // by itself
  };

  // False if the text has other mounts than those that are known.
  bool Take(std::string_view text) {
    Cursor at(text);
    NfsMount read;
    size_t index = 0;
    size_t column = std::size(kTotals) + 2 * kNfsOperations;
    bool first = true;
    for (; TakeNfsMount(at, read); ++index) {
      if (index == mounts_.size() || read.device != mounts_[index].device ||
          read.point != mounts_[index].point) {
        return false;
      }
      if (mounts_[index].counted) AddToTotals(read, std::exchange(first, false));
      if (!mounts_[index].shown) continue;
      Show(read, &values_[column]);
      column += kMountColumns;
    }
    return index == mounts_.size();
  }
  void AddToTotals(const NfsMount& read, bool first) {
    double* to = values_.data();
    const auto add = [&](double value) {
      *to = first ? value : *to + value;
      ++to;
    };
    add(read.bytes[kNfsRead] + read.bytes[kNfsDirectRead]);
    add(read.bytes[kNfsWritten] + read.bytes[kNfsDirectWritten]);
    add(read.bytes[kNfsServerRead]);
    add(read.bytes[kNfsServerWritten]);
    for (const NfsCalls& calls : read.calls) add(calls.calls);
    for (const NfsCalls& calls : read.calls) add(calls.total_seconds);
  }
  static void Show(const NfsMount& read, double* to) {
    to = std::copy(std::begin(read.bytes), std::end(read.bytes), to);
    for (const NfsCalls& calls : read.calls) {
      for (const CallField& field : kMountCalls) *to++ = calls.*field.member;
    }
  }

  void Rescan(std::string_view text, Nanos now) {
    // Another buffer than the one in which the text lies.
    ReadBuffer buffer;
    std::map<std::string_view, std::string_view> devices;  // by mount point
    for (Cursor lines(mountinfo_.Read(buffer, now)); !lines.AtEnd();) {
      MountLine line;
      if (ParseMountLine(lines.Line(), line)) devices[line.point] = line.device;
    }
    mounts_.clear();
    series_.clear();
    std::set<std::string_view> seen;
    std::vector<std::string> shown;
    Cursor at(text);
    for (NfsMount read; TakeNfsMount(at, read);) {
      Mount& mount = mounts_.emplace_back(Mount{std::string(read.device), std::string(read.point)});
      const auto device = devices.find(read.point);
      mount.counted = device == devices.end() || seen.insert(device->second).second;
      std::string point = Unescaped(read.point);
      mount.shown = level_ >= kMountLevel && mount.counted && shown.size() < kNfsMountsMostMounts &&
                    CheckTag("mountpoint", point).ok() &&
                    std::find(shown.begin(), shown.end(), point) == shown.end();
      if (mount.shown) shown.push_back(std::move(point));
    }
    if (!mounts_.empty()) Declare(shown);
    values_.assign(series_.size(), kMissing);
    ++generation_;
  }
  void Declare(const std::vector<std::string>& shown) {
    for (const MetricDecl& decl : kTotals) AddSeries(decl, {});
    for (const MetricDecl& decl : {kNfsMountsOperations, kNfsMountsOperationSeconds}) {
      for (const std::string_view name : kNfsOperationNames) {
        AddSeries(decl, {{"operation", std::string(name)}});
      }
    }
    for (const std::string& point : shown) {
      for (const MetricDecl& decl : kMountBytes) AddSeries(decl, {{"mountpoint", point}});
      for (const std::string_view name : kNfsOperationNames) {
        for (const CallField& field : kMountCalls) {
          AddSeries(field.decl, {{"mountpoint", point}, {"operation", std::string(name)}});
        }
      }
    }
    if (shown.size() < kNfsMountsMostMounts || std::exchange(limit_noted_, true)) return;
    notes_.push_back(
        fmt::format("nfs_mounts: only {} mounts are recorded by themselves", kNfsMountsMostMounts));
  }
  void AddSeries(const MetricDecl& decl, Tags tags) {
    Series& s = series_.emplace_back();
    s.metric = Metric(decl);
    s.tags = std::move(tags);
  }

  const int level_;
  ReadBuffer& buffer_;
  FileReader mountinfo_;
  FileReader mountstats_;
  std::vector<Mount> mounts_;  // of NFS, in the file's order
  Nanos read_at_ = 0;
  bool limit_noted_ = false;
};

}  // namespace

std::unique_ptr<Source> MakeNfsMountsSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<NfsMountsSource>(roots, level, buffer);
}

std::vector<MetricDecl> NfsMountsMetrics() {
  std::vector<MetricDecl> metrics(std::begin(kTotals), std::end(kTotals));
  metrics.push_back(kNfsMountsOperations);
  metrics.push_back(kNfsMountsOperationSeconds);
  metrics.insert(metrics.end(), std::begin(kMountBytes), std::end(kMountBytes));
  for (const CallField& field : kMountCalls) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
