#include "forward/follower.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <thread>

#include "core/config.h"
#include "core/log.h"
#include "forward/exporter.h"
#include "forward/job.h"

namespace sonde::forward {
namespace {

// As long as the head runs, and a while after.
class HeadsLife : public Patience {
 public:
  bool Wait(Nanos time) override {
    if (ended_at_ == 0) {
      pollfd head{STDIN_FILENO, POLLIN, 0};
      const int n = ::poll(&head, 1, static_cast<int>(time / kMillisecond));
      if (n > 0) Ended();
      return true;
    }
    const Nanos left = Left();
    if (left <= 0) return false;
    // The profile is usually complete in a moment, and a head on a node waits for it.
    const Nanos nap = std::min({time, left, nap_});
    nap_ = std::min(2 * nap_, kSecond / 2);
    ::poll(nullptr, 0, static_cast<int>(nap / kMillisecond) + 1);
    return true;
  }
  bool GoOn() override {
    if (ended_at_ == 0) {
      pollfd head{STDIN_FILENO, POLLIN, 0};
      if (::poll(&head, 1, 0) > 0) Ended();
    }
    return Left() > 0;
  }
  bool ended() const { return ended_at_ != 0; }
  Nanos Left() const {
    return ended_at_ == 0 ? kLinger : ended_at_ + kLinger - Clock::System().Monotonic();
  }

 private:
  // Nothing is ever written: only its end makes the pipe readable.
  void Ended() { ended_at_ = Clock::System().Monotonic(); }

  Nanos ended_at_ = 0;
  Nanos nap_ = 10 * kMillisecond;
};

// One profile and one destination.
class Following {
 public:
  Following(const std::string& archive, const std::string& key, const Destination& destination)
      : archive_(archive), key_(key), to_(destination) {}

  void Run() {
    bool caught_up = false;
    while (true) {
      const bool last = life_.ended();
      const Status sent = Pass();
      if (!sent.ok()) Tell(sent);
      if (record_ && record_->state().done) break;
      if (sent.ok() && !caught_up && !last) {
        caught_up = true;
        const Status left = CatchUp(archive_, to_, life_, key_);
        if (!left.ok()) Tell(left);
      }
      if (!life_.Wait(kPoll)) break;
    }
    exporter_.reset();
    record_.reset();
    if (life_.GoOn()) (void)CatchUp(archive_, to_, life_, key_);
  }

 private:
  Status Pass() {
    SONDE_RETURN_IF_ERROR(Open());
    return exporter_->Pass();
  }

  // What does not exist yet, such as the profile itself in the first moment, will exist next time.
  Status Open() {
    if (exporter_) return {};
    if (!reader_) {
      Result<std::shared_ptr<const Archive>> opened = Archive::Open(archive_);
      if (!opened.ok()) return opened.status();
      reader_ = *std::move(opened);
    }
    if (!record_) {
      Result<Record> record = Record::Open(archive_, key_, to_);
      if (!record.ok()) return record.status();
      record_.emplace(*std::move(record));
    }
    Result<std::unique_ptr<Http>> http = Http::Open(to_);
    if (!http.ok()) {
      (void)record_->Failed(http.status().message());
      return http.status();
    }
    delivery_.emplace(to_, *std::move(http), life_);
    exporter_.emplace(*reader_, key_, *delivery_, *record_);
    return {};
  }

  void Tell(const Status& status) {
    if (status.message() == told_) return;
    told_ = status.message();
    log::Warning("forward to {}: {}", to_.url.substr(0, to_.url.find('?')), told_);
  }

  const std::string archive_;
  const std::string key_;
  const Destination to_;
  HeadsLife life_;
  std::shared_ptr<const Archive> reader_;
  std::optional<Record> record_;
  std::optional<Delivery> delivery_;
  std::optional<Exporter> exporter_;
  std::string told_;
};

// All other work on this host comes first: this never delays it.
void BeHumble() {
  (void)setpriority(PRIO_PROCESS, 0, 19);
  (void)setsid();
  // Sockets of the head that it had not closed.
  (void)close_range(3, ~0U, 0);
  (void)chdir("/");
  umask(077);
  for (const int number : {SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(number, SIG_IGN);
}

}  // namespace

int RunFollower(const std::string& config_path, const std::string& archive,
                const std::string& key) {
  BeHumble();
  Status wrong;  // the head has noted it
  const Config config = LoadWhatIsRight(config_path, wrong);
  if (config.syslog) log::AddSystemLog();
  if (const auto level = log::ParseLevel(config.log_level); level.ok() && !config.log_dir.empty()) {
    (void)log::Open("sonded", fmt::format("{}/sonded.forward.{}.log", config.log_dir, key), *level);
  }
  Status error;
  const std::vector<Destination> destinations = ConfiguredDestinations(config, error);
  if (!error.ok()) log::Error("{}", error.message());
  std::vector<std::thread> threads;
  threads.reserve(destinations.size());
  for (const Destination& destination : destinations) {
    threads.emplace_back([&] { Following(archive, key, destination).Run(); });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace sonde::forward
