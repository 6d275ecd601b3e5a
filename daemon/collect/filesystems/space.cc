// How much space the mounted filesystems have, by statvfs every 10 s: it changes slowly.
//
// Local ones are asked by the daemon's thread: their answer is in memory. Remote ones, and those
// behind a path that a server has to resolve, are asked by a helper (remote_space.h): what one says
// is there a tick later, and missing once it has not answered for 3 s. Those that may hold up the
// daemon's end are not asked (mounted.h), which a note says.
//
// All nodes see a shared filesystem, so the step's number is the largest or smallest of theirs.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "daemon/collect/filesystems/filesystem_sources.h"
#include "daemon/collect/filesystems/mounted.h"

namespace sonde::collect {
namespace {

struct SpaceField {
  double Space::*member;
  MetricDecl decl;
};
constexpr MetricDecl Gauge(std::string_view name, std::string_view unit, Reduction reduction,
                           std::string_view help) {
  return {name, unit, MetricType::kGauge, 2, reduction, help};
}
// The names are node_exporter's.
constexpr SpaceField kSpaceFields[] = {
    {&Space::size, Gauge("node_filesystem_size_bytes", "bytes", Reduction::kMax,
                         "Size of a filesystem. Tags fstype, mountpoint.")},
    {&Space::free, Gauge("node_filesystem_free_bytes", "bytes", Reduction::kMin,
                         "Space that is not used, what is reserved for root included. Tags "
                         "fstype, mountpoint.")},
    {&Space::available, Gauge("node_filesystem_avail_bytes", "bytes", Reduction::kMin,
                              "Space that users can still fill. Tags fstype, mountpoint.")},
    {&Space::files,
     Gauge("node_filesystem_files", "1", Reduction::kMax,
           "Inodes: the most files and directories it can hold. Tags fstype, mountpoint.")},
    {&Space::files_free, Gauge("node_filesystem_files_free", "1", Reduction::kMin,
                               "Inodes that are not used. Tags fstype, mountpoint.")},
    {&Space::read_only,
     Gauge("node_filesystem_readonly", "1", Reduction::kMax,
           "1 if nothing can be written, perhaps after an error of the disk. Tags fstype, "
           "mountpoint.")},
};

constexpr Nanos kSpacePeriod = 10 * kSecond;
constexpr Nanos kPatience = 3 * kSecond;
constexpr size_t kMostFilesystems = 32;
constexpr int kMostNotes = 4;  // of one filesystem; on those that are not asked
constexpr size_t kMostNamed = 8;

// "/scratch (lustre)"
std::string Named(const Filesystem& filesystem) {
  const std::string below =
      filesystem.hangs == filesystem.type ? "" : fmt::format(" below {}", filesystem.hangs);
  return fmt::format("{} ({}{})", filesystem.point, filesystem.type, below);
}

class SpaceSource final : public Source {
 public:
  SpaceSource(const Roots& roots, std::string allowed, ReadBuffer& buffer, StatvfsCall call)
      : buffer_(buffer),
        table_(roots),
        allowed_(std::move(allowed)),
        call_(call),
        remote_(std::move(call)) {}

  std::string_view name() const override { return "filesystems"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override {
    if (now >= read_at_) {
      read_at_ = now + kSpacePeriod;
      std::string_view text;
      if (table_.Changed(buffer_, text)) Rescan(text);
      for (const Entry& entry : entries_) {
        if (!IsRemote(entry)) Write(entry, ReadSpace(call_, entry.filesystem.point));
      }
      ask_ = true;
    }
    if (ask_) ask_ = !remote_.Ask(now);
    if (!collect_ && !remote_.waiting()) return;
    remote_.Collect(now);
    collect_ = remote_.waiting();
    for (Entry& entry : entries_) {
      if (IsRemote(entry)) TakeAnswer(entry, now);
    }
  }

 private:
  struct Entry {
    Filesystem filesystem;
    size_t column = 0;
    size_t answer = 0;  // of a remote one
    int notes = 0;
    bool silent = false;
    Nanos silent_since = 0;
  };

  static bool IsRemote(const Entry& entry) {
    return entry.filesystem.asked == Filesystem::Asked::kByHelper;
  }

  void Write(const Entry& entry, const Space& space) {
    double* to = &values_[entry.column];
    for (const SpaceField& field : kSpaceFields) *to++ = space.*field.member;
  }

  void TakeAnswer(Entry& entry, Nanos now) {
    const RemoteSpace::Answer& answer = remote_.answers()[entry.answer];
    const bool silent = answer.waiting && now - answer.asked_at >= kPatience;
    Write(entry, silent ? Space() : answer.space);
    if (silent == entry.silent) return;
    entry.silent = silent;
    if (silent) entry.silent_since = answer.asked_at;
    if (++entry.notes > kMostNotes) return;
    const std::string_view point = entry.filesystem.point;
    const std::string_view type = entry.filesystem.type;
    notes_.push_back(
        silent ? fmt::format("filesystem {} ({}) does not answer since {}; its space is missing",
                             point, type, FormatTime(answer.asked_at))
               : fmt::format("filesystem {} ({}), which did not answer since {}, answers again",
                             point, type, FormatTime(entry.silent_since)));
  }

  void Rescan(std::string_view mountinfo) {
    std::vector<Filesystem> found;
    std::vector<std::string> not_asked;
    size_t left_out = 0;
    for (Filesystem& filesystem : ListFilesystems(mountinfo, allowed_)) {
      if (!CheckTag("mountpoint", filesystem.point).ok() ||
          !CheckTag("fstype", filesystem.type).ok()) {
        continue;
      }
      if (filesystem.asked == Filesystem::Asked::kNever) {
        not_asked.push_back(Named(filesystem));
      } else if (found.size() < kMostFilesystems) {
        found.push_back(std::move(filesystem));
      } else {
        ++left_out;
      }
    }
    NoteNotAsked(std::move(not_asked));
    if (left_out > 0 && !std::exchange(limit_noted_, true)) {
      notes_.push_back(fmt::format("filesystems: only {} of {} are recorded", kMostFilesystems,
                                   kMostFilesystems + left_out));
    }
    const bool same =
        std::equal(found.begin(), found.end(), entries_.begin(), entries_.end(),
                   [](const Filesystem& a, const Entry& b) { return a == b.filesystem; });
    if (!same) Declare(std::move(found));
  }

  // Of mounts that come and go, such as those of autofs, each is named once.
  void NoteNotAsked(std::vector<std::string> names) {
    if (allowed_ == "none") return;  // so the site knows
    std::erase_if(names, [&](const std::string& name) { return !not_asked_.insert(name).second; });
    if (names.empty() || ++not_asked_notes_ > kMostNotes) return;
    const size_t others = names.size() - std::min(names.size(), kMostNamed);
    names.resize(names.size() - others);
    notes_.push_back(fmt::format(
        "the space of {}{} is not recorded: a daemon that hangs there cannot be killed, and Slurm "
        "would drain the node (ask_filesystems in sonde.conf)",
        fmt::join(names, ", "), others == 0 ? "" : fmt::format(" and {} others", others)));
  }

  void Declare(std::vector<Filesystem> found) {
    std::vector<Entry> entries;
    std::vector<std::string> remote;
    series_.clear();
    for (Filesystem& filesystem : found) {
      const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
        return entry.filesystem == filesystem;
      });
      Entry& entry = entries.emplace_back(known == entries_.end() ? Entry() : *known);
      entry.column = series_.size();
      entry.answer = remote.size();
      for (const SpaceField& field : kSpaceFields) {
        Series& s = series_.emplace_back();
        s.metric = Metric(field.decl);
        s.tags = {{"fstype", filesystem.type}, {"mountpoint", filesystem.point}};
      }
      entry.filesystem = std::move(filesystem);
      if (IsRemote(entry)) remote.push_back(entry.filesystem.point);
    }
    entries_ = std::move(entries);
    values_.assign(series_.size(), kMissing);
    remote_.Watch(remote);
    collect_ = true;
    ++generation_;
  }

  ReadBuffer& buffer_;
  MountTable table_;
  const std::string allowed_;
  const StatvfsCall call_;
  RemoteSpace remote_;
  std::vector<Entry> entries_;
  Nanos read_at_ = 0;
  bool ask_ = false;
  bool collect_ = false;  // once more, though nothing is waiting
  bool limit_noted_ = false;
  std::set<std::string> not_asked_;
  int not_asked_notes_ = 0;
};

}  // namespace

std::unique_ptr<Source> MakeSpaceSource(const Roots& roots, const std::string& allowed,
                                        ReadBuffer& buffer, StatvfsCall call) {
  return std::make_unique<SpaceSource>(roots, allowed, buffer, std::move(call));
}

std::vector<MetricDecl> SpaceMetrics() {
  std::vector<MetricDecl> metrics;
  for (const SpaceField& field : kSpaceFields) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
