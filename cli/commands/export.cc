// sonde export: sends profiles to other databases, or writes them as OpenMetrics text.
#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/export_file.h"
#include "cli/progress.h"
#include "forward/formats/openmetrics.h"
#include "forward/job.h"
#include "forward/record.h"
#include "profiles/archive/listed_cards.h"
#include "web/opentsdb/request.h"

namespace sonde::cli {
namespace {

struct ExportOptions {
  std::vector<std::string> profiles;
  std::string to;
  std::string scope;
  std::string metrics;
  std::string nodes;
  std::string step;
  std::string since;
  std::string until;
  std::string token_file;
  std::string password_file;
  std::string ca_file;
  std::string give_up_after = "1m";
  size_t batch = 0;
  bool all = false;
  bool pending = false;
  bool again = false;
  bool dry_run = false;
  bool quiet = false;
};

// A receiver that has taken nothing for so long is given up.
class WaitsSoLong : public forward::Patience {
 public:
  explicit WaitsSoLong(Nanos limit) : limit_(limit), since_(Clock::System().Monotonic()) {}
  bool Wait(Nanos time) override {
    const Nanos left = since_ + limit_ - Clock::System().Monotonic();
    if (left <= 0) return false;
    ::poll(nullptr, 0, static_cast<int>(std::min(time, left) / kMillisecond) + 1);
    return true;
  }
  bool GoOn() override { return true; }
  void Succeeded() override { since_ = Clock::System().Monotonic(); }

 private:
  const Nanos limit_;
  Nanos since_;
};

// A destination by its name in sonde.conf, or as on a line there.
Result<forward::Destination> FindDestination(const Config& config, const ExportOptions& options) {
  std::string url = options.to;
  std::string text;
  for (const auto& [name, line] : config.forward_lines) {
    if (name != options.to) continue;
    const size_t blank = std::min(line.find_first_of(" \t"), line.size());
    url = line.substr(0, blank);
    text = line.substr(blank);
  }
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {}={}", key, value);
  };
  add("scope", options.scope);
  add("metrics", options.metrics);
  add("node", options.nodes);
  add("step", options.step);
  add("token_file", options.token_file);
  add("password_file", options.password_file);
  add("ca_file", options.ca_file);
  if (options.batch != 0) add("batch", std::to_string(options.batch));
  Result<forward::Destination> out = forward::ParseDestination(url, text);
  if (!out.ok()) return out;
  const Nanos now = Clock::System().Now();
  for (const auto& [given, time] :
       {std::pair{&options.since, &out->since}, std::pair{&options.until, &out->until}}) {
    if (given->empty()) continue;
    const Result<Nanos> parsed = web::ParseOpenTsdbTime(*given, now);
    if (!parsed.ok()) return parsed.status();
    *time = *parsed;
  }
  return out;
}

Result<std::vector<ProfileEntry>> Choose(const Archive& archive, const ExportOptions& options) {
  if (options.all) return archive.List();
  std::vector<ProfileEntry> chosen;
  for (const std::string& id : options.profiles) {
    Result<std::vector<ProfileEntry>> found = FindSteps(archive, id);
    if (!found.ok()) return found;
    for (ProfileEntry& entry : *found) {
      const bool known = std::any_of(chosen.begin(), chosen.end(), [&](const ProfileEntry& other) {
        return other.key == entry.key;
      });
      if (!known) chosen.push_back(std::move(entry));
    }
  }
  return chosen;
}

// The oldest first: receivers like the order of time.
void Sort(std::vector<ProfileEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const ProfileEntry& a, const ProfileEntry& b) {
    return a.job.start != b.job.start ? a.job.start < b.job.start : a.key < b.key;
  });
}

// Shows the progress, by the time that was reached.
forward::Exporter::OnProgress Shown(const ProfileEntry& entry, Progress& progress) {
  return [&entry, &progress](const forward::Exporter::Progress& sent) {
    const Nanos end = entry.job.end != 0 ? entry.job.end : Clock::System().Now();
    const Nanos span = std::max<Nanos>(end - entry.job.start, 1);
    const Nanos done = std::clamp<Nanos>(sent.reached - entry.job.start, 0, span);
    // The number of all samples is unknown: estimated from the average over the time so far.
    const double all = done == 0 ? 0
                                 : static_cast<double>(sent.taken) * static_cast<double>(span) /
                                       static_cast<double>(done);
    progress.Set(sent.taken, static_cast<uint64_t>(all));
  };
}

std::string Story(const forward::Sent& sent) {
  if (sent.nothing_new) return "all was sent before (--again sends it once more)";
  std::string text = fmt::format("{} samples in {} requests, {} bytes", sent.progress.taken,
                                 sent.requests, sent.bytes);
  if (sent.progress.refused > 0) {
    text += fmt::format("; refused {}: {}", sent.progress.refused, sent.refusal);
  }
  if (sent.progress.untold > 0) {
    text += fmt::format("; {} that cannot be told there were left out", sent.progress.untold);
  }
  if (!sent.done) text += "; what comes is sent another time";
  return text;
}

// Sends one profile; if only that profile fails, the others are still sent.
Status SendOne(const std::string& directory, const ProfileEntry& entry,
               const forward::Destination& to, const ExportOptions& options, forward::Sent& total) {
  const Result<Nanos> limit = ParseDuration(options.give_up_after);
  if (!limit.ok()) return limit.status();
  WaitsSoLong patience(*limit);
  forward::SendOptions how;
  how.again = options.again;
  Progress progress("sending " + entry.job.id.ToString(), "samples", !options.quiet);
  how.on_progress = Shown(entry, progress);
  const Result<forward::Sent> sent = forward::SendProfile(directory, entry.key, to, patience, how);
  progress.End();
  if (!sent.ok()) return sent.status().Within(entry.job.id.ToString());
  total.progress.taken += sent->progress.taken;
  if (!options.quiet) Note(fmt::format("{}: {}", entry.job.id.ToString(), Story(*sent)));
  return {};
}

int SendAll(const std::string& directory, const std::vector<ProfileEntry>& entries,
            const forward::Destination& to, const ExportOptions& options) {
  forward::Sent total;
  Status first;
  for (const ProfileEntry& entry : entries) {
    const Status status = SendOne(directory, entry, to, options, total);
    if (status.ok()) continue;
    if (first.ok()) first = status;
    const Code code = status.code();
    // If the destination is absent or refuses us, it will not take the next profile either.
    if (code == Code::kUnavailable || code == Code::kTimeout || code == Code::kPermission ||
        code == Code::kInvalid || code == Code::kUnsupported) {
      break;
    }
    if (&entry != &entries.back()) Note(status.message());
  }
  if (first.ok()) return kDone;
  const bool later = first.code() == Code::kUnavailable || first.code() == Code::kTimeout;
  Fail(first);
  if (later) Note("what was taken is noted: the same command goes on from there");
  return kFailed;
}

std::string PendingText(const forward::PendingRecord& pending) {
  std::string text = fmt::format("{} to {}: {} samples sent so far", pending.key, pending.state.url,
                                 pending.state.taken);
  if (!pending.state.failure.empty()) text += "; " + pending.state.failure;
  return text;
}

// Sends the rest of earlier steps to the destinations of sonde.conf.
int SendPending(const std::string& directory, const Archive& archive, const Config& config,
                const ExportOptions& options) {
  Status error;
  std::map<std::string, forward::Destination> destinations;
  for (forward::Destination& one : forward::ConfiguredDestinations(config, error)) {
    if (options.to.empty() || options.to == one.name) destinations.emplace(one.Id(), one);
  }
  if (!error.ok()) Note(error.message());
  std::map<std::string, std::vector<ProfileEntry>> waiting;
  for (const forward::PendingRecord& pending : forward::ListPending(directory)) {
    const auto entry = archive.Entry(pending.key);
    if (!entry.ok() || entry->running || !destinations.contains(pending.id)) continue;
    if (options.dry_run) Print(PendingText(pending) + "\n");
    waiting[pending.id].push_back(*entry);
  }
  if (options.dry_run) return kDone;
  int code = kDone;
  for (auto& [id, entries] : waiting) {
    Sort(entries);
    code = std::max(code, SendAll(directory, entries, destinations.at(id), options));
  }
  if (waiting.empty() && !options.quiet) Note("nothing waits to be sent");
  return code;
}

int Export(const Environment& env, const ExportOptions& options) {
  if (options.pending == (options.all || !options.profiles.empty())) {
    return FailUsage("name profiles, or --all of them, or what is --pending");
  }
  if (!options.pending && options.to.empty()) return FailUsage("say where: --to URL, FILE.om or -");
  const Result<Config> config = LoadConfig(env.config_path);
  if (!config.ok()) return Fail(config.status());
  const Result<std::string> directory = ArchiveDirectory(env);
  if (!directory.ok()) return Fail(directory.status());
  // Takes in finished steps; then others may write the archive again while this goes on.
  {
    const auto opened = OpenArchive(env, ArchiveUse::kReading);
    if (!opened.ok()) return Fail(opened.status());
  }
  const auto archive = Archive::Open(*directory);
  if (!archive.ok()) return Fail(archive.status());
  if (options.pending) return SendPending(*directory, **archive, *config, options);
  const Result<forward::Destination> to = FindDestination(*config, options);
  if (!to.ok()) return FailUsage(to.status().message());
  Result<std::vector<ProfileEntry>> entries = Choose(**archive, options);
  if (!entries.ok()) return Fail(entries.status());
  Sort(*entries);
  if (options.dry_run) {
    const auto counted = forward::CountSamples(**archive, *entries, *to);
    if (!counted.ok()) return Fail(counted.status());
    return Print(fmt::format("{} profiles, {} samples of {} series\n", entries->size(),
                             counted->samples, counted->series));
  }
  if (forward::IsFile(to->protocol)) {
    const int done = ExportToFile(**archive, *entries, *to, options.quiet);
    NoteDamage(**archive);
    return done;
  }
  return SendAll(*directory, *entries, *to, options);
}

}  // namespace

void RegisterExport(Arguments app, Run& run) {
  Arguments sub =
      app.Command("export", "Send profiles on to another database, or write them to files");
  const auto options = std::make_shared<ExportOptions>();
  sub.Option("JOB", options->profiles, "As in 4711.0; several are possible");
  sub.Flag("--all", options->all, "Every profile of the archive");
  sub.Flag("--pending", options->pending,
           "What steps could not send to the destinations of sonde.conf");
  sub.Option("--to", options->to,
             "A URL (docs: Prometheus remote write, InfluxDB, OpenTSDB), a name of "
             "sonde.conf's forward lines, FILE.csv, FILE.jsonl, FILE.om (OpenMetrics), "
             "FILE.trace.json (Perfetto), FILE.sonde (for sonde import); csv:DIR/ for a file "
             "of each profile; csv:- and so on for standard output");
  sub.Option("--scope", options->scope, "job: the step's numbers; node: those of each node")
      .OneOf({"job", "node"});
  sub.Option("--metrics,--metric", options->metrics,
             "Names with * and ?, between commas; !NAME: not");
  sub.Option("--node", options->nodes, "Of these hosts only, likewise; means --scope node");
  sub.Option("--step", options->step,
             "In files: one value for so much time, as in 10s; of gauges the mean");
  sub.Option("--since,--from", options->since, "Only from this time on, as in 1h-ago");
  sub.Option("--until", options->until, "Only up to this time");
  sub.Option("--token-file", options->token_file, "A file with the receiver's token");
  sub.Option("--password-file", options->password_file, "A file with user:password");
  sub.Option("--ca-file", options->ca_file, "Certificates to trust, instead of the system's");
  sub.Option("--batch", options->batch, "Samples in a request");
  sub.Option("--give-up-after", options->give_up_after, "How long the receiver may take nothing")
      .ShowDefault();
  sub.Flag("--again", options->again, "Also what was sent there before");
  sub.Flag("--dry-run", options->dry_run, "Only say how much it is");
  sub.Flag("--quiet", options->quiet, "Only say what fails");
  sub.OnRead([&run, options] {
    run = [options](const Environment& env) { return Export(env, *options); };
  });
}

}  // namespace sonde::cli
