// What a sample costs: CPU time per sample and per metric at levels 2 and 4, by source, and beside
// it node_exporter's, if it is installed.
//
// The kernel's own part, which no reader can avoid, is measured on the same files and given apart;
// what is left is Sonde's.
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
#include <fmt/format.h>
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
constexpr int kSamples = 400;
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

// Our sampler at one level.
class Ours {
 public:
  Ours(int level, const std::vector<std::unique_ptr<Sleeper>>& tasks) : sampler_({level, "", {}}) {
    for (size_t rank = 0; rank < tasks.size(); ++rank) {
      if (!sampler_.tasks().AddTask(static_cast<uint32_t>(rank), tasks[rank]->pid()).ok()) abort();
    }
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
  const std::vector<double>& micros() const { return micros_; }
  void Print(int level) const {
    const Spread s = Summarize(micros_);
    const auto n = static_cast<double>(metrics());
    fmt::print("level {}: {} metrics, {:.1f} us per sample ({:.1f} to {:.1f}), {:.3f} per metric\n",
               level, n, s.median, s.low, s.high, s.median / n);
    fmt::print("figure sample.level{}_metrics {} 1\n", level, n);
    fmt::print("figure sample.level{}_us {:.2f} us\n", level, s.median);
    fmt::print("figure sample.level{}_us_per_metric {:.4f} us\n", level, s.median / n);
  }
  void PrintSources() {
    fmt::print("{:<18}{:>9}{:>11}{:>15}\n", "source", "metrics", "us", "us per metric");
    for (const auto& source : sampler_.sources()) {
      std::vector<double> micros;
      for (int round = 0; round < kRounds; ++round) {
        const double start = ThreadSeconds();
        for (int i = 0; i < kSamples; ++i) source->Sample(Tick());
        micros.push_back((ThreadSeconds() - start) * 1e6 / kSamples);
      }
      const double median = Summarize(micros).median;
      const auto n = static_cast<double>(source->values().size());
      fmt::print("{:<18}{:>9}{:>11.2f}{:>15.3f}\n", source->name(), n, median, median / n);
    }
  }

 private:
  Nanos Tick() { return now_ += sonde::kSecond; }

  Nanos now_ = 1'800'000'000 * sonde::kSecond;
  Sampler sampler_;
  std::vector<double> micros_;
};

// The same files, as the sampler keeps them open, read and not looked at: what the kernel takes to
// write them.
class Floor {
 public:
  Floor() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const std::string file = std::filesystem::read_symlink(entry.path(), error);
      const int fd = atoi(entry.path().filename().c_str());
      const bool kernels = file.starts_with("/proc/") || file.starts_with("/sys/");
      if (!error && kernels && std::filesystem::is_regular_file(entry.path(), error)) {
        files_.push_back(fd);
      }
    }
  }
  void Run() {
    static char buffer[65536];
    const double start = ThreadSeconds();
    for (int i = 0; i < kSamples; ++i) {
      for (const int fd : files_) {
        if (pread(fd, buffer, sizeof(buffer), 0) < 0) abort();
      }
    }
    micros_.push_back((ThreadSeconds() - start) * 1e6 / kSamples);
  }
  // Beside the whole samples that were taken in the same rounds.
  void Print(const Ours& whole) const {
    std::vector<double> own = whole.micros();
    for (size_t i = 0; i < own.size(); ++i) own[i] -= micros_[i];
    const Spread kernel = Summarize(micros_);
    const Spread rest = Summarize(std::move(own));
    const auto n = static_cast<double>(whole.metrics());
    fmt::print("  kernel: {} files, {:.1f} us ({:.1f} to {:.1f}), {:.3f} per metric\n",
               files_.size(), kernel.median, kernel.low, kernel.high, kernel.median / n);
    fmt::print("  Sonde: {:.1f} us ({:.1f} to {:.1f}), {:.3f} per metric\n", rest.median, rest.low,
               rest.high, rest.median / n);
    fmt::print("figure sample.level2_kernel_us {:.2f} us\n", kernel.median);
    fmt::print("figure sample.level2_own_us {:.2f} us\n", rest.median);
  }

 private:
  std::vector<int> files_;
  std::vector<double> micros_;
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
  Floor floor;  // of level 2's files, before others are open
  Ours level4(4, tasks);
  const auto exporter = Exporter::Start();
  for (int round = 0; round < kRounds; ++round) {
    level2.Run();
    floor.Run();
    level4.Run();
    if (exporter) exporter->Run();
  }
  level2.Print(2);
  floor.Print(level2);
  level2.PrintSources();
  level4.Print(4);
  level4.PrintSources();
  if (exporter) {
    exporter->Print();
  } else {
    fmt::print("node_exporter is not installed: no peer was measured\n");
  }
  return 0;
}
