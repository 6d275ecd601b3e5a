// sonde top: what a running step does now, on the whole terminal.
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <memory>

#include "cli/command.h"
#include "cli/top/asker.h"
#include "cli/top/chooser.h"
#include "cli/top/layout.h"
#include "cli/top/model.h"
#include "cli/top/terminal.h"
#include "profiles/archive/listed_cards.h"

namespace sonde::cli {
namespace top {
namespace {

constexpr size_t kOnceWidth = 80;
constexpr size_t kMostRows = size_t{1} << 20;  // of a frame that is printed
constexpr Nanos kOncePatience = 10 * kSecond;
constexpr Nanos kChoicesEvery = 2 * kSecond;
constexpr std::string_view kNoStep =
    "no step of yours is running with telemetry; start one with: srun --telemetry-level=2 ./app";

struct TopOptions {
  std::string id;
  Nanos interval = 0;
  bool once = false;
};

Nanos Now() { return Clock::System().Now(); }

// The running steps of the user, or those that `id` means, the newest first.
Result<std::vector<ProfileEntry>> RunningSteps(const Archive& archive, const std::string& id) {
  if (id.empty()) {
    Result<std::vector<ProfileEntry>> all = archive.ListWithRunning(0);
    if (!all.ok()) return all.status();
    std::erase_if(
        *all, [](const ProfileEntry& entry) { return !entry.running || entry.endpoint.port == 0; });
    if (all->empty()) return Status(Code::kNotFound, std::string(kNoStep));
    return all;
  }
  Result<std::vector<ProfileEntry>> found = FindSteps(archive, id);
  if (!found.ok()) return found.status();
  std::erase_if(
      *found, [](const ProfileEntry& entry) { return !entry.running || entry.endpoint.port == 0; });
  if (!found->empty()) return found;
  const auto running = FindRunning(archive, id);  // says why there is none
  if (!running.ok()) return running.status();
  return std::vector<ProfileEntry>{*running};
}

// A step, asked and looked at.
class Watch {
 public:
  Watch(std::shared_ptr<const Archive> archive, const ProfileEntry& entry, Nanos interval)
      : model_(entry.job.id.ToString(), interval), asker_(std::move(archive), entry) {}

  Model& model() { return model_; }
  View& view() { return view_; }
  int fd() const { return asker_.fd(); }

  void Ask(size_t points) {
    for (auto& ask : model_.Due(view_, points, Now())) {
      asker_.Send(std::move(ask));
      ++open_;
    }
  }
  bool waits() const { return open_ > 0; }
  void Take() {
    for (const Reply& reply : asker_.Take()) {
      --open_;
      model_.Take(reply.ask, reply.answer, Now());
      if (reply.answer.ok() || model_.ended()) continue;
      if (const auto job = asker_.LookForEnd()) model_.End(*job, Now());
    }
  }

 private:
  Model model_;
  View view_;
  Asker asker_;
  size_t open_ = 0;
};

void WaitFor(int fd, Nanos patience) {
  pollfd wait{fd, POLLIN, 0};
  ::poll(&wait, 1, static_cast<int>(std::clamp<Nanos>(patience / kMillisecond, 0, 60'000)));
}

size_t OnceWidth(const Environment& env) {
  constexpr size_t kWidest = 1000;  // more is no terminal's width, but none at all
  return env.width > kWidest ? kOnceWidth : env.width;
}

// One frame of a step. Answers lead to further questions, until nothing is open.
int PrintStep(const std::shared_ptr<const Archive>& archive, const ProfileEntry& entry,
              const TopOptions& options, const Environment& env) {
  Watch watch(archive, entry, options.interval);
  watch.view().page = kMostRows;
  const Nanos deadline = Now() + kOncePatience;
  watch.Ask(0);
  while (watch.waits() && Now() < deadline) {
    WaitFor(watch.fd(), deadline - Now());
    watch.Take();
    watch.Ask(0);
  }
  const Model& model = watch.model();
  if (!model.known()) {
    return Fail(
        Status(Code::kTimeout, model.problem().empty()
                                   ? fmt::format("the head of {} does not answer", model.id())
                                   : model.problem()));
  }
  Look look{std::max(OnceWidth(env), kLeastWidth), 0, env.unicode, Now(), false};
  look.height = FullHeight(model, watch.view(), look);
  return Print(Draw(model, watch.view(), look).ToText());
}

class Choosing {
 public:
  Choosing(const std::shared_ptr<const Archive>& archive,
           const std::vector<ProfileEntry>& entries) {
    for (const ProfileEntry& entry : entries) {
      choices_.push_back({entry.job});
      askers_.push_back(std::make_unique<Asker>(archive, entry));
    }
  }
  std::vector<Choice>& choices() { return choices_; }
  std::vector<pollfd> fds() const {
    std::vector<pollfd> all;
    for (const auto& asker : askers_) all.push_back({asker->fd(), POLLIN, 0});
    return all;
  }
  void Ask(Nanos now) {
    if (now < due_ || open_ > 0) return;
    due_ = now + kChoicesEvery;
    for (size_t i = 0; i < askers_.size(); ++i) askers_[i]->Send(CpuAsk(choices_[i].job));
    open_ = askers_.size();
  }
  bool Take() {
    bool any = false;
    for (size_t i = 0; i < askers_.size(); ++i) {
      for (const Reply& reply : askers_[i]->Take()) {
        TakeCpu(reply.answer, choices_[i]);
        --open_;
        any = true;
      }
    }
    return any;
  }
  bool waits() const { return open_ > 0; }
  Nanos due() const { return due_; }

 private:
  std::vector<Choice> choices_;
  std::vector<std::unique_ptr<Asker>> askers_;
  Nanos due_ = 0;
  size_t open_ = 0;
};

int PrintChoices(const std::shared_ptr<const Archive>& archive,
                 const std::vector<ProfileEntry>& entries, const Environment& env) {
  Choosing choosing(archive, entries);
  const Nanos deadline = Now() + kOncePatience;
  choosing.Ask(Now());
  while (choosing.waits() && Now() < deadline) {
    auto fds = choosing.fds();
    ::poll(fds.data(), fds.size(), static_cast<int>((deadline - Now()) / kMillisecond));
    choosing.Take();
  }
  const Look look{std::max(OnceWidth(env), kLeastWidth), entries.size() + 3, env.unicode, Now(),
                  false};
  return Print(DrawChoices(choosing.choices(), {}, look).ToText());
}

// What happens to the terminal, and when it is over.
class Events {
 public:
  Events(Terminal& terminal, const Signals& signals) : terminal_(terminal), signals_(signals) {}

  // For an answer at one of `fds`, a key, a signal, or `until`.
  void Wait(std::vector<pollfd> fds, Nanos until) {
    fds.push_back({STDIN_FILENO, POLLIN, 0});
    fds.push_back({signals_.fd(), POLLIN, 0});
    const Nanos left = std::clamp<Nanos>(until - Now(), 0, 60 * kSecond);
    ::poll(fds.data(), fds.size(), static_cast<int>((left + kMillisecond - 1) / kMillisecond));
    if ((fds[fds.size() - 2].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) gone_ = true;
    while (const int signal = signals_.Next()) Handle(signal);
  }
  std::optional<Key> Next() { return terminal_.Next(gone_); }
  bool over() const { return gone_ || signal_ != 0; }
  // That is to end the program; 0: none.
  int signal() const { return signal_; }

 private:
  void Handle(int signal) {
    if (signal == SIGWINCH) {
      terminal_.Resize();
    } else if (signal == SIGTSTP) {
      terminal_.Suspend();
    } else {
      signal_ = signal;
    }
  }
  Terminal& terminal_;
  const Signals& signals_;
  bool gone_ = false;
  int signal_ = 0;
};

Look LookAt(const Terminal& terminal) {
  return {terminal.width(), terminal.height(), terminal.unicode(), Now(), true};
}

// The clock of the frame moves on once a second, also when nothing is asked.
Nanos NextFrame(Nanos due) { return std::min(due, Now() + kSecond); }

void ShowStep(Watch& watch, Terminal& terminal, Events& events) {
  while (!events.over()) {
    Look look = LookAt(terminal);
    View& view = watch.view();
    view.page = PageOf(watch.model(), view, look);
    ShowCursor(watch.model(), view);
    watch.Ask(PlotPoints(look));
    terminal.Show(Draw(watch.model(), view, look));
    events.Wait({{watch.fd(), POLLIN, 0}}, NextFrame(watch.model().NextDue(view)));
    watch.Take();
    while (const auto key = events.Next()) {
      if (!Press(*key, watch.model(), view)) return;
    }
  }
}

// The place of the step that was chosen; the number of steps: none was.
size_t Choose(Choosing& choosing, Terminal& terminal, Events& events) {
  Chosen chosen;
  const size_t count = choosing.choices().size();
  while (!events.over()) {
    choosing.Ask(Now());
    terminal.Show(DrawChoices(choosing.choices(), chosen, LookAt(terminal)));
    events.Wait(choosing.fds(), NextFrame(choosing.due()));
    choosing.Take();
    bool done = false;
    while (const auto key = events.Next()) {
      if (!Press(*key, count, chosen, done)) return count;
      if (done) return chosen.place;
    }
  }
  return count;
}

Result<int> ShowAll(const std::shared_ptr<const Archive>& archive,
                    const std::vector<ProfileEntry>& entries, const TopOptions& options,
                    const Environment& env) {
  const Signals signals;
  const auto terminal = Terminal::Open(env.colour, env.unicode);
  if (!terminal.ok()) return terminal.status();
  Events events(**terminal, signals);
  size_t place = 0;
  if (entries.size() > 1) {
    Choosing choosing(archive, entries);
    place = Choose(choosing, **terminal, events);
  }
  if (place < entries.size()) {
    Watch watch(archive, entries[place], options.interval);
    ShowStep(watch, **terminal, events);
  }
  return events.signal();
}

int Top(const TopOptions& options, const Environment& env) {
  auto opened = OpenArchive(env, ArchiveUse::kReading);
  if (!opened.ok()) return Fail(opened.status());
  const std::shared_ptr<const Archive> archive = opened->reader;
  opened->owner.reset();  // others may write while this looks on
  const auto entries = RunningSteps(*archive, options.id);
  if (!entries.ok()) return Fail(entries.status());
  if (options.once) {
    return entries->size() == 1 ? PrintStep(archive, entries->front(), options, env)
                                : PrintChoices(archive, *entries, env);
  }
  if (!env.terminal || ::isatty(STDIN_FILENO) != 1) {
    Note("this needs a terminal; 'sonde top --once' prints one frame");
    return kUsage;
  }
  const Result<int> signal = ShowAll(archive, *entries, options, env);
  if (!signal.ok()) return Fail(signal.status());
  if (*signal != 0) {
    // The terminal is as it was: the program ends as it would have ended at once.
    std::signal(*signal, SIG_DFL);
    ::raise(*signal);
  }
  return kDone;
}

Status ReadInterval(const std::string& text, Nanos& interval) {
  const Result<Nanos> read = ParseDuration(text);
  if (!read.ok()) return read.status();
  if (*read < kSecond || *read > kMaxPeriod) {
    return {Code::kInvalid, "expected 1s to 1h, such as 2s"};
  }
  interval = *read;
  return {};
}

}  // namespace
}  // namespace top

void RegisterTop(Arguments app, Run& run) {
  const auto options = std::make_shared<top::TopOptions>();
  Arguments sub = app.Command("top", "Watch a running step: its nodes, ranks and cores, live");
  sub.Option("JOB[.STEP]", options->id, "As in 123 or 123.0; the running one if there is only one");
  sub.Checked(
         "--interval", "How often to ask, 1s at least; the step's period if not given",
         [options](const std::string& text) { return top::ReadInterval(text, options->interval); })
      .Type("TIME");
  sub.Flag("--once", options->once, "Print one frame as text, $COLUMNS or 80 wide, and end");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return top::Top(*options, env); };
  });
}

}  // namespace sonde::cli
