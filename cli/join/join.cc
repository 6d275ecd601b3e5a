// sonde join: scrapes a Prometheus or OpenMetrics exporter, or a metric-proxy, into the metrics of
// the step.
//
// A process of the step like any other that uses libsonde: it registers the exporter's metrics and
// sets them after every scrape. It ends with the step.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "cli/command.h"
#include "cli/join/joined.h"
#include "cli/join/report.h"
#include "cli/join/scrape.h"
#include "cli/join/step.h"
#include "core/text/options.h"
#include "libclient/sonde.h"
#include "web/source/step_control.h"

namespace sonde::cli {
namespace {

struct Options {
  std::string target;
  std::string every = "1";
  std::string wait = "10";
  int level = 1;
  size_t max_series = 10000;
  size_t max_megabytes = 16;
  bool foreground = false;
};

constexpr Nanos kTimeoutLimit = 10 * kSecond;
constexpr Nanos kFirstTimeout = 4 * kSecond;  // somebody waits for the result
static_assert(2 * kFirstTimeout <= web::StepControl::kJoinPatience);

volatile std::sig_atomic_t stopped = 0;

void OnSignal(int /*signal*/) { stopped = 1; }

// SIGTERM and SIGINT end the waiting below; scraped values are recorded by then.
void HandleSignals() {
  struct sigaction action = {};
  action.sa_handler = &OnSignal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

// The wall clock may be set meanwhile.
void Sleep(Nanos time) {
  const Nanos end = Clock::System().Monotonic() + time;
  const timespec until = {end / kSecond, end % kSecond};
  while (stopped == 0 &&
         clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// By a process before this one, in the same step: its counts are in the record.
bool WasRecorded() { return std::getenv("SONDE_JOIN_AGAIN") != nullptr; }

class Scraper {
 public:
  Scraper(const Options& options, web::ScrapeTarget target, Nanos period, join::Report report)
      : target_(std::move(target)),
        period_(period),
        report_(report),
        max_bytes_(options.max_megabytes << 20),
        joined_({.instance = target_.Instance(),
                 .every = period,
                 .level = options.level,
                 .max_series = options.max_series,
                 .step_start = WasRecorded() ? 0 : join::StepStart()},
                sink_) {}

  // The result of one scrape.
  Status Once() {
    const Nanos start = Clock::System().Monotonic();
    const Result<join::Scraped> scraped =
        join::Scrape(target_, std::min(period_, kTimeoutLimit), max_bytes_);
    if (!scraped.ok()) {
      joined_.Lose();
      return scraped.status();
    }
    kind_ = scraped->kind;
    const double seconds = static_cast<double>(Clock::System().Monotonic() - start) / kSecond;
    return joined_.Take(scraped->text, seconds).Within("scrape " + target_.Url());
  }

  // Runs until the step ends, or somebody ends it. Reports when scrapes begin to fail and when they
  // work again.
  void Run() {
    bool failing = false;
    while (stopped == 0 && sonde_attached() != 0) {
      const Status status = Once();
      if (status.ok() == failing) {
        Note(status.ok() ? fmt::format("{} answers again", target_.Url())
                         : std::string(status.message()));
        Tell(status);
      }
      failing = !status.ok();
      Sleep(period_ - Clock::System().Now() % period_);
    }
    joined_.Stop();
  }

 private:
  void Tell(const Status& status) {
    if (status.ok()) return report_.Up(ToString(kind_), target_.Url());
    report_.Down(status.message());
  }

  web::ScrapeTarget target_;
  Nanos period_;
  join::Report report_;
  join::Kind kind_ = join::Kind::kPrometheus;
  size_t max_bytes_;
  join::StepSink sink_;
  join::Joined joined_;
};

class NullSink final : public join::Sink {
 public:
  void* Register(const Series& /*series*/) override { return this; }
  void Set(void* /*handle*/, double /*value*/) override {}
  void Add(void* /*handle*/, double /*value*/) override {}
};

// Scrapes once without recording, so that the user sees mistakes at once, and finds out where the
// values are. An exporter that is just being started may take a while to answer.
Result<join::Found> TryOut(const Options& options, const web::ScrapeTarget& asked, Nanos period,
                           Nanos wait) {
  const Nanos deadline = Clock::System().Monotonic() + wait;
  const join::FirstLimits limits{period, kFirstTimeout, options.max_megabytes << 20};
  Result<join::Found> found = Status(Code::kInternal, "not tried");
  for (;;) {
    found = join::Find(asked, limits);
    const Nanos now = Clock::System().Monotonic();
    if (found.ok() || found.status().code() == Code::kLimit || now >= deadline || stopped != 0) {
      break;
    }
    Sleep(kSecond / 5);
  }
  if (!found.ok()) return found;
  const web::ScrapeTarget& target = found->target;
  NullSink sink;
  join::Joined joined({.instance = target.Instance(), .max_series = options.max_series}, sink);
  SONDE_RETURN_IF_ERROR(joined.Take(found->scraped.text, 0).Within("scrape " + target.Url()));
  if (joined.series() == 0) {
    return Status(Code::kCorrupt, target.Url() + " serves no metrics");
  }
  Note(
      fmt::format("{}: {} series every {}", target.Url(), joined.series(), FormatDuration(period)));
  if (joined.left_out() > 0) {
    Note(fmt::format("{} series are not recorded, such as {}", joined.left_out(),
                     joined.first_left_out()));
  }
  return found;
}

// Goes on as a process of its own, away from the terminal's signals and from pipes whose readers
// wait for the end.
bool GoToBackground() {
  const pid_t pid = fork();
  if (pid < 0) return false;
  if (pid > 0) _exit(kDone);
  setsid();
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; ++fd) dup2(null, fd);
  if (null > 2) close(null);
  return true;
}

int Join(const Options& options) {
  const Result<web::ScrapeTarget> target = web::ParseScrapeTarget(options.target);
  const Nanos period = ParsePeriod(options.every),
              wait = options.wait == "0" ? 0 : ParsePeriod(options.wait);
  if (!target.ok() || period < kSecond / 10 || wait < 0) {
    Note(!target.ok()
             ? std::string(target.status().message())
             : "--every and --wait take a time such as 500ms or 10s, --every at least 100ms");
    return kUsage;
  }
  // Before anything is shared with the daemon: a forked child would have to start over.
  if (sonde_init() != SONDE_OK) {
    Note(fmt::format("{}; run it in a step with --telemetry-level=1 or more, or under 'sonde run'",
                     sonde_strerror(sonde_status())));
    return kFailed;
  }
  HandleSignals();
  join::Report report;
  const Result<join::Found> found = TryOut(options, *target, period, wait);
  if (!found.ok()) {
    report.Down(found.status().message());
    return Fail(found.status());
  }
  report.Up(ToString(found->scraped.kind), found->target.Url());
  if (!options.foreground && !GoToBackground()) return Fail(SystemError("fork"));
  std::make_unique<Scraper>(options, found->target, period, report)->Run();
  return kDone;
}

}  // namespace

void RegisterJoin(Arguments app, Run& run) {
  auto options = std::make_shared<Options>();
  Arguments sub = app.Command(
      "join",
      "Record what a Prometheus or OpenMetrics exporter, or a metric-proxy, serves with the step's "
      "metrics");
  sub.Option("HOST:PORT[/path]", options->target, "The exporter; the path is /metrics").Required();
  sub.Option("--every", options->every, "Time between scrapes").ShowDefault();
  sub.Option("--wait", options->wait, "How long it may take until it answers first").ShowDefault();
  sub.Option("--level", options->level, "The telemetry level from which it is recorded")
      .Within(1, 4)
      .ShowDefault();
  sub.Option("--max-series", options->max_series, "More are left out")
      .Within(1, 16000)
      .ShowDefault();
  sub.Option("--max-megabytes", options->max_megabytes, "Of one answer")
      .Within(1, 256)
      .ShowDefault();
  sub.Flag("--foreground", options->foreground, "Do not go to the background");
  sub.OnRead(
      [options, &run] { run = [options](const Environment& /*env*/) { return Join(*options); }; });
}

}  // namespace sonde::cli
