#include "cli/export_file.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "cli/command.h"
#include "cli/progress.h"
#include "forward/formats/openmetrics.h"
#include "forward/formats/table.h"
#include "profiles/records/profile_file.h"

namespace sonde::cli {
namespace {

using forward::Protocol;

// A file that appears under its name when it is whole, or standard output.
class OutFile {
 public:
  explicit OutFile(std::string path) : path_(std::move(path)), partial_(path_ + ".part") {}
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;
  ~OutFile() {
    if (file_ == nullptr || standard()) return;
    std::fclose(file_);
    std::remove(partial_.c_str());
  }

  bool standard() const { return path_ == "-"; }
  Status Open() {
    file_ = standard() ? stdout : std::fopen(partial_.c_str(), "we");
    return file_ != nullptr ? Status() : SystemError("write " + path_);
  }
  Status Write(std::string_view text) {
    bytes_ += text.size();
    if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return {};
    return SystemError("write " + path_);
  }
  Status Finish() {
    if (std::fflush(file_) != 0) return SystemError("write " + path_);
    if (standard()) return {};
    if (::fsync(::fileno(file_)) != 0) return SystemError("write " + path_);
    if (std::rename(partial_.c_str(), path_.c_str()) != 0) return SystemError("name " + path_);
    std::fclose(std::exchange(file_, nullptr));
    return {};
  }
  uint64_t bytes() const { return bytes_; }

 private:
  const std::string path_;
  const std::string partial_;
  std::FILE* file_ = nullptr;
  uint64_t bytes_ = 0;
};

Result<std::string> WriteRecords(const Archive& archive, const ProfileEntry& entry, OutFile& file,
                                 Progress& progress) {
  ProfileFileWriter writer([&](std::string_view bytes) { return file.Write(bytes); });
  uint64_t blocks = 0;
  const auto profile = archive.Load(entry.key);
  if (!profile.ok()) return profile.status();
  const double stored = profile->cost.stored_bytes;
  const auto left_out = archive.ReadRecords(entry.key, [&](const FileRecord& record) {
    blocks += record.kind == FileRecordKind::kBlock ? 1 : 0;
    progress.Set(writer.bytes(), stored > 0 ? static_cast<uint64_t>(stored) : 0);
    return writer.Write(record);
  });
  if (!left_out.ok()) return left_out.status();
  SONDE_RETURN_IF_ERROR(writer.End());
  std::string story = fmt::format("{} blocks, {} bytes", blocks, writer.bytes());
  if (*left_out > 0) {
    story +=
        fmt::format("; {} blocks fail their checks in the archive and were left out", *left_out);
  }
  return story;
}

std::string StoryOf(const forward::Written& written) {
  return fmt::format("{} samples of {} series", written.samples, written.series);
}

// CSV, JSON lines and traces.
Result<std::string> WriteTables(const Archive& archive, const std::vector<ProfileEntry>& entries,
                                const forward::Destination& to, OutFile& file, Progress& progress) {
  const auto sink =
      forward::MakeTableSink(to.protocol, [&](std::string_view text) { return file.Write(text); });
  // One that cannot be written is no reason to write the others first.
  for (size_t i = 0; entries.size() > 1 && i < entries.size(); ++i) {
    const Status wide = forward::CheckWidth(archive, entries[i], to);
    if (!wide.ok()) return wide.Within(entries[i].job.id.ToString());
  }
  forward::Written all;
  for (const ProfileEntry& entry : entries) {
    const Nanos span = std::max<Nanos>(entry.job.end - entry.job.start, 1);
    const auto written =
        forward::WriteTable(archive, entry, to, *sink, [&](uint64_t samples, Nanos reached) {
          const Nanos done = std::clamp<Nanos>(reached - entry.job.start, 1, span);
          const double whole =
              static_cast<double>(samples) * static_cast<double>(span) / static_cast<double>(done);
          progress.Set(all.samples + samples, all.samples + static_cast<uint64_t>(whole));
        });
    if (!written.ok()) return written.status().Within(entry.job.id.ToString());
    all.samples += written->samples;
    all.series += written->series;
  }
  return StoryOf(all);
}

Result<std::string> Fill(const Archive& archive, const std::vector<ProfileEntry>& entries,
                         const forward::Destination& to, OutFile& file, Progress& progress) {
  if (to.protocol == Protocol::kProfile) {
    auto story = WriteRecords(archive, entries.front(), file, progress);
    if (!story.ok()) return story.status().Within(entries.front().job.id.ToString());
    return story;
  }
  if (forward::IsTable(to.protocol)) return WriteTables(archive, entries, to, file, progress);
  const auto written =
      forward::WriteOpenMetrics(archive, entries, to, [&](std::string_view text) -> Status {
        progress.Set(file.bytes(), 0);
        return file.Write(text);
      });
  if (!written.ok()) return written.status();
  return StoryOf(*written);
}

Status WriteOne(const Archive& archive, const std::vector<ProfileEntry>& entries,
                const forward::Destination& to, bool quiet) {
  OutFile file(to.url);
  SONDE_RETURN_IF_ERROR(file.Open());
  const bool records = to.protocol == Protocol::kProfile;
  Progress progress("exporting " + entries.front().job.id.ToString(),
                    records || to.protocol == Protocol::kOpenMetrics ? "bytes" : "samples",
                    !quiet && !file.standard());
  const auto story = Fill(archive, entries, to, file, progress);
  progress.End();
  if (!story.ok()) return story.status();
  SONDE_RETURN_IF_ERROR(file.Finish());
  if (!quiet && !file.standard()) Note(fmt::format("wrote {} to {}", *story, to.url));
  return {};
}

// The profile exists, so kNotFound must mean something else here.
int Failed(const Status& status) {
  Fail(status);
  return kFailed;
}

// One file for each profile.
int WriteEach(const Archive& archive, const std::vector<ProfileEntry>& entries,
              const forward::Destination& to, bool quiet) {
  if (::mkdir(to.url.c_str(), 0777) != 0 && errno != EEXIST) {
    return Fail(SystemError("make directory " + to.url));
  }
  int code = kDone;
  for (const ProfileEntry& entry : entries) {
    forward::Destination one = to;
    one.url += entry.key + std::string(forward::SuffixOf(to.protocol));
    const Status status = WriteOne(archive, {entry}, one, quiet);
    if (!status.ok()) code = Failed(status);
  }
  return code;
}

}  // namespace

int ExportToFile(const Archive& archive, const std::vector<ProfileEntry>& entries,
                 const forward::Destination& to, bool quiet) {
  if (to.url.ends_with('/')) return WriteEach(archive, entries, to, quiet);
  const bool many = to.protocol == Protocol::kOpenMetrics || to.protocol == Protocol::kJsonLines;
  if (entries.empty()) return Fail({Code::kNotFound, "there is no profile to export"});
  if (!many && entries.size() > 1) {
    return FailUsage(
        fmt::format("such a file holds one profile and these are {}: name one, or a "
                    "directory, as in --to {}DIR/",
                    entries.size(), forward::PrefixOf(to.protocol)));
  }
  if (to.url == "-" && to.protocol == Protocol::kProfile && ::isatty(STDOUT_FILENO) == 1) {
    return FailUsage("a profile's file is binary: it is not written to a terminal");
  }
  const Status status = WriteOne(archive, entries, to, quiet);
  return status.ok() ? kDone : Failed(status);
}

}  // namespace sonde::cli
