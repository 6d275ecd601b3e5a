// sonde peaks: what this node's memory and processors do at most, measured once for each type of
// processor.
#include <fmt/core.h>

#include <cstdlib>
#include <memory>

#include "cli/command.h"
#include "cli/peaks/find.h"
#include "cli/peaks/measure.h"
#include "core/time.h"
#include "insight/steps/peaks_file.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/model/text.h"
#include "profiles/report/local_time.h"

namespace sonde::cli {
namespace {

using peaks::NodePeaks;

constexpr double kBusy = 0.25;  // load for each CPU

struct PeaksOptions {
  std::string file;
  bool site = false;
  bool again = false;
  bool list = false;
  bool json = false;
  bool quiet = false;
};

std::string PeaksText(const NodePeaks& one, const Environment& env) {
  using enum text::Table::Align;
  std::string out = text::Printable(one.type.ToString()) + "\n";
  text::Table table({{"", kLeft}, {"all", kRight}, {"one", kRight}});
  const auto row = [&](std::string_view what, double insight::Peaks::*rate, std::string_view unit) {
    table.Row(
        {std::string(what), text::Value(one.all.*rate, unit), text::Value(one.one.*rate, unit)});
  };
  table.Row({"CPUs", std::to_string(one.allowed), "1"});
  row("memory (triad)", &insight::Peaks::bytes_per_second, "bytes_per_second");
  row("double precision", &insight::Peaks::double_flops, "flops_per_second");
  row("single precision", &insight::Peaks::single_flops, "flops_per_second");
  out += table.Render(text::kIndent, env.width);
  out += fmt::format("  ridge of all: {} FLOP per byte; fastest with {}\n",
                     text::Number(one.all.double_flops / one.all.bytes_per_second),
                     text::Printable(one.vectors));
  out += fmt::format("  measured on {} at {}, arrays of {}\n", text::Printable(one.host),
                     FormatLocalTime(one.time), text::Bytes(one.array_bytes));
  if (one.last_cache_bytes > 0 && one.array_bytes < 4 * one.last_cache_bytes) {
    out += fmt::format(
        "  Arrays are less than 4 times the last caches ({}), for want of memory: the "
        "bandwidth is partly that of caches.\n",
        text::Bytes(one.last_cache_bytes));
  }
  if (one.allowed < one.type.cpus) {
    out +=
        fmt::format("  Only {} of its {} CPUs could be used here.\n", one.allowed, one.type.cpus);
  }
  return out;
}

int Show(const std::vector<NodePeaks>& all, const PeaksOptions& options, const Environment& env) {
  if (options.json) return Print(insight::PeaksToJson(all));
  std::string out;
  for (const NodePeaks& one : all) out += (out.empty() ? "" : "\n") + PeaksText(one, env);
  return Print(out.empty() ? "No peaks were measured yet.\n" : out);
}

// Where these are kept.
Result<std::string> FileOf(const PeaksOptions& options, const Environment& env) {
  if (!options.file.empty()) return options.file;
  const auto files = peaks::FilesOf(env);
  if (!files.ok()) return files.status();
  if (!options.site) {
    const size_t slash = files->user.rfind('/');
    SONDE_RETURN_IF_ERROR(PrepareArchive(ArchivePaths(files->user.substr(0, slash))));
    return files->user;
  }
  if (files->site.empty()) {
    return Status(Code::kInvalid, "--site: sonde.conf names no file (peaks = /shared/peaks.json)");
  }
  return files->site;
}

int Peaks(const PeaksOptions& options, const Environment& env) {
  if (options.list) {
    const auto known = peaks::KnownPeaks(env, options.file);
    return known.ok() ? Show(*known, options, env) : Fail(known.status());
  }
  const auto file = FileOf(options, env);
  if (!file.ok()) return Fail(file.status());
  const auto kept = insight::ReadPeaks(*file);  // before the work
  if (!kept.ok()) return Fail(kept.status());
  const ProcessorType type = ReadProcessorType();
  const auto allowed = static_cast<uint32_t>(peaks::AllowedCpus().size());
  const NodePeaks* const known = insight::FindPeaks(*kept, type, allowed);
  if (known != nullptr && !options.again) {
    if (!options.quiet) Note("these were measured before; --again measures anew");
    return Show({*known}, options, env);
  }
  double load = 0;
  if (!options.quiet && ::getloadavg(&load, 1) == 1 && load > kBusy * allowed) {
    Note(
        fmt::format("others use this machine (its load is {:.1f}), so the peaks may come out too "
                    "low: measure again when it is idle",
                    load));
  }
  peaks::MeasureOptions how;
  how.on_progress = [&](std::string_view what) {
    if (!options.quiet) Note(fmt::format("measuring {}", what));
  };
  const auto measured = peaks::Measure(how);
  if (!measured.ok()) return Fail(measured.status());
  const Status status = insight::KeepPeaks(*file, *measured, options.site);
  if (!status.ok()) return Fail(status);
  return Show({*measured}, options, env);
}

}  // namespace

void RegisterPeaks(Arguments app, Run& run) {
  const auto options = std::make_shared<PeaksOptions>();
  Arguments sub = app.Command(
      "peaks", "Measure what this node's memory and processors do at most, for sonde roofline");
  sub.Flag("--again", options->again, "Even if this type of processor was measured before");
  sub.Option("--file", options->file, "Keep them in this file, not in the archive").Type("FILE");
  sub.Flag("--site", options->site, "Keep them in the site's file, for all users");
  sub.Flag("--list", options->list, "Show all that are known, and measure nothing");
  sub.Flag("--json", options->json, "As JSON, with every value exactly");
  sub.Flag("--quiet", options->quiet, "Without progress on standard error");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Peaks(*options, env); };
  });
}

}  // namespace sonde::cli
