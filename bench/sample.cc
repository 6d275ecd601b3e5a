// What a sample costs: CPU time per sample and per metric at levels 2 and 4, by source, and beside
// it node_exporter's, if it is installed.
//
// Ticks are 1 s apart in the time the sampler is told, and there are so many that what is read
// every 10 s counts with a tenth: figures are means over all ticks. The kernel's own part, which no
// reader can avoid, is measured on the same files, each as often, and given apart; what is left is
// Sonde's.
// Both are net of the wake-up: ours is the thread's CPU time over many samples in a row; the
// exporter's is what its process used over many scrapes, HTTP included, since that is how it gives
// its values. Runs alternate, so that both see the same machine; figures are medians, with the
// smallest and the largest beside them.
//
//   bench_sample [TASKS]   with that many sleeping tasks (4)
//
// The exporter is `prometheus-node-exporter` from PATH, or $SONDE_NODE_EXPORTER.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/collect/sampler.h"

namespace {

using sonde::Nanos;
using sonde::collect::Group;
using sonde::collect::Sampler;
using sonde::collect::Source;

constexpr int kRounds = 15;
constexpr int kSamples = 600;        // ticks: ten minutes'
constexpr int kSourceSamples = 200;  // of one source
constexpr int kScrapes = 20;

double ThreadSeconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Spread {
  double median, low, high;
};
Spread Summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

// A child that sleeps until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

// The kernel's files that are open, by descriptor.
std::map<int, std::string> OpenFiles() {
  std::map<int, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string file = std::filesystem::read_symlink(entry.path(), error);
    const bool kernels = file.starts_with("/proc/") || file.starts_with("/sys/");
    if (!error && kernels && std::filesystem::is_regular_file(entry.path(), error)) {
      files.emplace(atoi(entry.path().filename().c_str()), file);
    }
  }
  return files;
}

// Our sampler at one level, and the same files, as it keeps them open, read and not looked at: what
// the kernel takes to write them.
class Ours {
 public:
  Ours(int level, const std::vector<std::unique_ptr<Sleeper>>& tasks)
      : level_(level), sampler_({level, "", {}}), tasks_(tasks.size()) {
    for (size_t rank = 0; rank < tasks.size(); ++rank) {
      if (!sampler_.tasks().AddTask(static_cast<uint32_t>(rank), tasks[rank]->pid()).ok()) abort();
    }
    for (size_t i = 0; i < sampler_.sources().size(); ++i) FindFiles(i);
    for (int i = 0; i < 20; ++i) sampler_.Sample(Tick());
  }
  size_t metrics() const {
    return sampler_.row(Group::kOs).size() + sampler_.row(Group::kTask).size();
  }
  void Run() {
    const double start = ThreadSeconds();
    for (int i = 0; i < kSamples; ++i) sampler_.Sample(Tick());
    micros_.push_back((ThreadSeconds() - start) * 1e6 / kSamples);
  }
  void RunFloor() {
    static char buffer[65536];
    const double start = ThreadSeconds();
    for (int i = 0; i < kSamples; ++i) {
      for (const auto& [fd, every] : files_) {
        if (i % every == 0 && pread(fd, buffer, sizeof(buffer), 0) < 0) abort();
      }
    }
    floor_.push_back((ThreadSeconds() - start) * 1e6 / kSamples);
  }
  void Print() {
    const Spread s = Summarize(micros_);
    const auto n = static_cast<double>(metrics());
    fmt::print("level {}: {} metrics, {:.1f} us per sample ({:.1f} to {:.1f}), {:.3f} per metric\n",
               level_, n, s.median, s.low, s.high, s.median / n);
    Figure("metrics", n, "1");
    Figure("us", s.median, "us");
    Figure("us_per_metric", s.median / n, "us");
    PrintFloor();
    PrintSources();
  }

 private:
  struct File {
    int fd;
    int every;  // ticks
  };

  // A tick's time, 1 s after the one before.
  Nanos Tick() { return now_ += sonde::kSecond; }
  int EveryTicks(size_t source) const {
    return sampler_.IsDear(source) ? static_cast<int>(sonde::kSlowPeriod / sonde::kSecond) : 1;
  }
  // Those a source opens when it is read first. Lists of children are only read after forks, those
  // of mounts when one comes or goes.
  void FindFiles(size_t source) {
    const std::map<int, std::string> before = OpenFiles();
    sampler_.sources()[source]->Sample(now_);
    for (const auto& [fd, file] : OpenFiles()) {
      if (before.contains(fd) || file.ends_with("/children") ||
          file.find("/mount") != std::string::npos)
        continue;
      files_.push_back({fd, EveryTicks(source)});
    }
  }
  void Figure(std::string_view what, double value, std::string_view unit) const {
    fmt::print("figure sample.level{}_{} {:.4g} {}\n", level_, what, value, unit);
  }
  // Beside the whole samples that were taken in the same rounds.
  void PrintFloor() const {
    std::vector<double> own = micros_;
    for (size_t i = 0; i < own.size(); ++i) own[i] -= floor_[i];
    const Spread kernel = Summarize(floor_);
    const Spread rest = Summarize(std::move(own));
    const auto n = static_cast<double>(metrics());
    fmt::print("  kernel: {} files, {:.1f} us ({:.1f} to {:.1f}), {:.3f} per metric\n",
               files_.size(), kernel.median, kernel.low, kernel.high, kernel.median / n);
    fmt::print("  Sonde: {:.1f} us ({:.1f} to {:.1f}), {:.3f} per metric\n", rest.median, rest.low,
               rest.high, rest.median / n);
    Figure("kernel_us", kernel.median, "us");
    Figure("own_us", rest.median, "us");
  }
  void PrintSources() {
    fmt::print("{:<18}{:>9}{:>13}{:>12}{:>15}\n", "source", "metrics", "us per read", "us a tick",
               "us per metric");
    for (size_t i = 0; i < sampler_.sources().size(); ++i) {
      Source& source = *sampler_.sources()[i];
      std::vector<double> micros;
      for (int round = 0; round < kRounds; ++round) {
        const double start = ThreadSeconds();
        for (int sample = 0; sample < kSourceSamples; ++sample) source.Sample(Tick());
        micros.push_back((ThreadSeconds() - start) * 1e6 / kSourceSamples);
      }
      const double read = Summarize(micros).median;
      const double tick = read / EveryTicks(i);
      const auto n = static_cast<double>(source.values().size());
      fmt::print("{:<18}{:>9}{:>13.2f}{:>12.2f}{:>15.3f}\n", source.name(), n, read, tick,
                 tick / n);
      if (source.name() == "tasks" && tasks_ > 0) {
        Figure("us_per_task", tick / static_cast<double>(tasks_), "us");
      }
    }
  }

  const int level_;
  Nanos now_ = 1'800'000'000 * sonde::kSecond;
  Sampler sampler_;
  const size_t tasks_;
  std::vector<File> files_;
  std::vector<double> micros_;
  std::vector<double> floor_;
};

// node_exporter with its default collectors on a free port of the loopback interface.
class Exporter {
 public:
  static std::unique_ptr<Exporter> Start() {
    const char* given = getenv("SONDE_NODE_EXPORTER");
    auto exporter = std::unique_ptr<Exporter>(new Exporter);
    exporter->port_ = FreePort();
    const std::string program = given != nullptr ? given : "prometheus-node-exporter";
    std::string address = fmt::format("--web.listen-address=127.0.0.1:{}", exporter->port_);
    std::string quiet = "--log.level=error";
    std::string name = program;
    posix_spawn_file_actions_t silent;
    posix_spawn_file_actions_init(&silent);
    posix_spawn_file_actions_addopen(&silent, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    char* const argv[] = {name.data(), address.data(), quiet.data(), nullptr};
    if (posix_spawnp(&exporter->pid_, program.c_str(), &silent, nullptr, argv, environ) != 0) {
      exporter->pid_ = 0;
    }
    posix_spawn_file_actions_destroy(&silent);
    if (exporter->pid_ == 0) return nullptr;
    for (int i = 0; i < 200; ++i) {
      if (exporter->Scrape() > 0) return exporter;
      usleep(20'000);  // it gives no sign when it listens
    }
    return nullptr;
  }
  ~Exporter() {
    if (pid_ <= 0) return;
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  void Run() {
    const double start = ProcessSeconds();
    for (int i = 0; i < kScrapes; ++i) metrics_ = Scrape();
    micros_.push_back((ProcessSeconds() - start) * 1e6 / kScrapes);
  }
  void Print() const {
    const Spread s = Summarize(micros_);
    const auto n = static_cast<double>(metrics_);
    fmt::print("node_exporter: {} metrics, {:.0f} us per scrape ({:.0f} to {:.0f})\n", n, s.median,
               s.low, s.high);
    fmt::print("figure sample.node_exporter_us_per_metric {:.2f} us\n", s.median / n);
  }

 private:
  static uint16_t FreePort() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = Loopback(0);
    socklen_t length = sizeof(address);
    bind(fd, reinterpret_cast<sockaddr*>(&address), length);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
    close(fd);
    return ntohs(address.sin_port);
  }
  static sockaddr_in Loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  // The number of values in one scrape, 0 if there was none.
  size_t Scrape() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = Loopback(port_);
    constexpr std::string_view kRequest = "GET /metrics HTTP/1.0\r\n\r\n";
    std::string text;
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
        send(fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) > 0) {
      char part[65536];
      for (ssize_t n; (n = recv(fd, part, sizeof(part), 0)) > 0;) {
        text.append(part, static_cast<size_t>(n));
      }
    }
    close(fd);
    std::istringstream lines(text.substr(std::min(text.find("\r\n\r\n"), text.size())));
    size_t values = 0;
    for (std::string line; std::getline(lines, line);) {
      values += !line.empty() && line[0] >= 'a' && line[0] <= 'z' ? 1 : 0;
    }
    return values;
  }
  double ProcessSeconds() const {
    std::ifstream file(fmt::format("/proc/{}/stat", pid_));
    std::string text;
    std::getline(file, text);
    std::istringstream fields(text.substr(std::min(text.rfind(')') + 2, text.size())));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

  pid_t pid_ = 0;
  uint16_t port_ = 0;
  size_t metrics_ = 0;
  std::vector<double> micros_;
};

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 4;
  std::vector<std::unique_ptr<Sleeper>> tasks;
  for (int i = 0; i < count; ++i) tasks.push_back(std::make_unique<Sleeper>());
  Ours level2(2, tasks);
  Ours level4(4, tasks);
  const auto exporter = Exporter::Start();
  for (int round = 0; round < kRounds; ++round) {
    for (Ours* ours : {&level2, &level4}) {
      ours->Run();
      ours->RunFloor();
    }
    if (exporter) exporter->Run();
  }
  level2.Print();
  level4.Print();
  if (exporter) {
    exporter->Print();
  } else {
    fmt::print("node_exporter is not installed: no peer was measured\n");
  }
  return 0;
}
