#include "cli/peaks/measure.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <thread>

#include "cli/peaks/kernels.h"
#include "core/machine/processor_type.h"
#include "core/text/settings.h"
#include "profiles/disk/archive_dir.h"

namespace sonde::cli::peaks {
namespace {

constexpr uint64_t kCacheTimes = 4;         // an array is that many times the last caches
constexpr uint64_t kShareOfMemory = 12;     // all arrays take a quarter of what is free
constexpr uint64_t kLeastArray = 64 << 20;  // where caches are not known, or small
constexpr uint64_t kTooSmall = 1 << 20;
constexpr int kMostCpuNumber = 4096;

std::string TextOfFile(const std::string& path) {
  constexpr size_t kMost = 1u << 20;
  const auto text = ReadSmallFile(path, kMost);
  return text.ok() ? *text : std::string();
}

uint64_t NumberOf(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Pages of its own, not yet written: the thread that writes one first has it near.
class Pages {
 public:
  explicit Pages(size_t elements) : size_(elements) {
    void* at = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    ::madvise(at, bytes(), MADV_HUGEPAGE);
    data_ = static_cast<double*>(at);
  }
  ~Pages() {
    if (data_ != nullptr) ::munmap(data_, bytes());
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  bool ok() const { return data_ != nullptr; }
  // The part of one of several threads, in whole cache lines.
  std::span<double> Part(size_t thread, size_t threads) const {
    constexpr size_t kLine = 8;
    const auto edge = [&](size_t i) {
      return i == threads ? size_ : size_ / kLine * i / threads * kLine;
    };
    return {data_ + edge(thread), edge(thread + 1) - edge(thread)};
  }

 private:
  size_t bytes() const { return size_ * sizeof(double); }
  size_t size_;
  double* data_ = nullptr;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs `work(thread)` on a thread for each CPU, all at once, again and again. Gives the seconds of
// the shortest repetition, from the common begin to the end of the last; `prepare` comes before
// all.
class Crew {
 public:
  using Work = std::function<void(size_t thread)>;
  static Result<double> Shortest(const std::vector<int>& cpus, const MeasureOptions& options,
                                 const Work& prepare, const Work& work) {
    Crew crew(cpus.size(), options);
    std::vector<std::jthread> threads;
    try {
      for (size_t i = 0; i < cpus.size(); ++i) {
        threads.emplace_back([&crew, &prepare, &work, i] { crew.Run(i, prepare, work); });
        const int error = Pin(threads.back().native_handle(), cpus[i]);
        if (error != 0) crew.failed_ = error;
      }
    } catch (const std::system_error& e) {
      crew.failed_ = e.code().value();
      // Those that are not there do not come to the start.
      for (size_t i = threads.size(); i < cpus.size(); ++i) crew.ready_.arrive_and_drop();
    }
    crew.ready_.arrive_and_wait();
    threads.clear();
    if (crew.failed_ != 0) return SystemError("pin a thread to each CPU", crew.failed_);
    return crew.best_;
  }

 private:
  Crew(size_t threads, const MeasureOptions& options)
      : options_(options),
        ready_(static_cast<ptrdiff_t>(threads) + 1),
        line_(static_cast<ptrdiff_t>(threads), Clocked{this}) {}

  static int Pin(pthread_t thread, int cpu) {
    cpu_set_t* set = CPU_ALLOC(kMostCpuNumber);
    const size_t size = CPU_ALLOC_SIZE(kMostCpuNumber);
    CPU_ZERO_S(size, set);
    CPU_SET_S(static_cast<size_t>(cpu), size, set);
    const int error = ::pthread_setaffinity_np(thread, size, set);
    CPU_FREE(set);
    return error;
  }

  // When all threads have come to the line, and none has gone on.
  struct Clocked {
    Crew* crew;
    void operator()() const noexcept { crew->Clock(); }
  };
  void Clock() noexcept {
    const double now = Now();
    running_ = !running_;
    if (running_) {
      begin_ = now;
      if (first_ == 0) first_ = now;
      return;
    }
    constexpr double kBetter = 0.99;
    const double took = now - begin_;
    in_vain_ = took < kBetter * best_ ? 0 : in_vain_ + 1;
    best_ = std::min(best_, took);
    done_ = in_vain_ >= options_.repetitions || now - first_ > options_.most_seconds;
  }

  void Run(size_t thread, const Work& prepare, const Work& work) {
    ready_.arrive_and_wait();  // until all are pinned
    if (failed_ != 0) return;
    prepare(thread);
    while (!done_) {
      line_.arrive_and_wait();
      work(thread);
      line_.arrive_and_wait();
    }
  }

  const MeasureOptions& options_;
  std::barrier<> ready_;
  std::barrier<Clocked> line_;
  int failed_ = 0;  // set before all are at the start
  // Changed at the line only.
  bool running_ = false;
  bool done_ = false;
  int in_vain_ = 0;
  double first_ = 0;
  double begin_ = 0;
  double best_ = HUGE_VAL;
};

class Measuring {
 public:
  Measuring(const MeasureOptions& options, uint64_t array_bytes)
      : options_(options), elements_(array_bytes / sizeof(double)) {}

  Status Memory(const std::vector<int>& cpus, double& bytes_per_second) const {
    Tell("memory", cpus.size());
    const Pages a(elements_);
    const Pages b(elements_);
    const Pages c(elements_);
    if (!a.ok() || !b.ok() || !c.ok()) return SystemError("take memory for three arrays");
    const size_t n = cpus.size();
    const auto prepare = [&](size_t i) {
      std::ranges::fill(a.Part(i, n), 1.0);
      std::ranges::fill(b.Part(i, n), 2.0);
      std::ranges::fill(c.Part(i, n), 0.5);
    };
    double shortest = HUGE_VAL;
    for (const auto triad : {Triad, TriadPastCaches}) {
      const auto work = [&](size_t i) { triad(a.Part(i, n), b.Part(i, n), c.Part(i, n)); };
      const auto seconds = Crew::Shortest(cpus, options_, prepare, work);
      if (!seconds.ok()) return seconds.status();
      shortest = std::min(shortest, *seconds);
    }
    bytes_per_second = kTriadBytes * static_cast<double>(elements_) / shortest;
    return {};
  }

  Status Arithmetic(const std::vector<int>& cpus, insight::Peaks& peaks,
                    std::string& vectors) const {
    Tell("arithmetic", cpus.size());
    for (const FmaKernel& kernel : FmaKernels()) {
      double in_double = 0;
      double in_single = 0;
      SONDE_RETURN_IF_ERROR(Rate(cpus, kernel.in_double, kernel.flops_of_double_round, in_double));
      SONDE_RETURN_IF_ERROR(Rate(cpus, kernel.in_single, kernel.flops_of_single_round, in_single));
      if (in_double > peaks.double_flops) vectors = kernel.name;
      peaks.double_flops = std::max(peaks.double_flops, in_double);
      peaks.single_flops = std::max(peaks.single_flops, in_single);
    }
    return {};
  }

 private:
  void Tell(std::string_view what, size_t cpus) const {
    if (!options_.on_progress) return;
    options_.on_progress(fmt::format("{}, {} CPU{}", what, cpus, cpus == 1 ? "" : "s"));
  }
  // As many rounds as take the time that is asked for.
  Status Rate(const std::vector<int>& cpus, double (*loop)(uint64_t), double flops_of_round,
              double& rate) const {
    uint64_t rounds = 1024;
    double took = 0;
    while (took < options_.seconds / 16 && rounds < uint64_t{1} << 40) {
      rounds *= 4;
      const double begin = Now();
      static_cast<void>(loop(rounds));
      took = Now() - begin;
    }
    rounds = static_cast<uint64_t>(static_cast<double>(rounds) * options_.seconds / took) + 1;
    std::vector<double> sums(cpus.size());  // so that the work is not left out
    const auto work = [&](size_t i) { sums[i] += loop(rounds); };
    const auto seconds = Crew::Shortest(
        cpus, options_, [](size_t /*thread*/) {}, work);
    if (!seconds.ok()) return seconds.status();
    for (const double sum : sums) {
      if (!(sum > 0)) return {Code::kInternal, "the arithmetic has a wrong result"};
    }
    rate =
        flops_of_round * static_cast<double>(rounds) * static_cast<double>(cpus.size()) / *seconds;
    return {};
  }

  const MeasureOptions& options_;
  size_t elements_;
};

// What the control groups of this process, of either version, let it have more; they may be a
// job's.
uint64_t RoomOfGroups(const std::string& proc) {
  struct Version {
    std::string_view line, root, limit, used;
  };
  constexpr Version kVersions[] = {
      {"0::", "/sys/fs/cgroup", "/memory.max", "/memory.current"},
      {":memory:", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes"}};
  uint64_t room = std::numeric_limits<uint64_t>::max();
  const std::string groups = TextOfFile(proc + "/self/cgroup");
  for (const Version& version : kVersions) {
    const size_t at = groups.find(version.line);
    if (at == std::string::npos) continue;
    const size_t begin = at + version.line.size();
    std::string path = groups.substr(begin, groups.find('\n', begin) - begin);
    for (; path.size() > 1; path.resize(path.rfind('/'))) {
      const std::string directory = std::string(version.root) + path;
      const std::string limit = TextOfFile(directory + std::string(version.limit));
      const std::string used = TextOfFile(directory + std::string(version.used));
      if (limit.empty() || !std::isdigit(static_cast<unsigned char>(limit[0]))) continue;
      const uint64_t most = NumberOf(TrimLine(limit)), has = NumberOf(TrimLine(used));
      room = std::min(room, most > has ? most - has : 0);
    }
  }
  return room;
}

uint64_t FreeMemory(const std::string& proc) {
  const std::string text = TextOfFile(proc + "/meminfo");
  constexpr std::string_view kKey = "MemAvailable:";
  const size_t at = text.find(kKey);
  if (at == std::string::npos) return 0;
  const uint64_t node =
      NumberOf(TrimLine(std::string_view(text).substr(at + kKey.size(), 24))) * 1024;
  return std::max<uint64_t>(1, std::min(node, RoomOfGroups(proc)));  // 0: not known
}

}  // namespace

std::vector<int> AllowedCpus() {
  std::vector<int> cpus;
  cpu_set_t* set = CPU_ALLOC(kMostCpuNumber);
  const size_t size = CPU_ALLOC_SIZE(kMostCpuNumber);
  if (::sched_getaffinity(0, size, set) == 0) {
    for (int cpu = 0; cpu < kMostCpuNumber; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), size, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  return cpus;
}

uint64_t LastCacheBytes(const std::string& sys, const std::vector<int>& cpus) {
  std::map<std::string, uint64_t> caches;  // by the CPUs that share one
  uint64_t last_level = 0;
  for (const int cpu : cpus) {
    for (int index = 0; index < 8; ++index) {
      const std::string dir =
          fmt::format("{}/devices/system/cpu/cpu{}/cache/index{}/", sys, cpu, index);
      const uint64_t level = NumberOf(TextOfFile(dir + "level"));
      const std::string size = TextOfFile(dir + "size");  // "32768K"
      if (level == 0 || level < last_level) continue;
      if (level > last_level) caches.clear();
      last_level = level;
      const size_t unit = size.find_first_of("KM");
      const uint64_t factor = unit == std::string::npos ? 1 : size[unit] == 'K' ? 1024 : 1 << 20;
      caches[TextOfFile(dir + "shared_cpu_list")] = NumberOf(size) * factor;
    }
  }
  uint64_t sum = 0;
  for (const auto& [shared, bytes] : caches) sum += bytes;
  return sum;
}

Result<insight::NodePeaks> Measure(const MeasureOptions& options) {
  insight::NodePeaks peaks;
  peaks.type = ReadProcessorType(options.proc, options.sys);
  if (!peaks.type.known()) {
    return Status(Code::kUnsupported, options.proc + "/cpuinfo does not say which processor it is");
  }
  const std::vector<int> cpus = AllowedCpus();
  if (cpus.empty()) return SystemError("see which CPUs may be used");
  const uint64_t caches = LastCacheBytes(options.sys, cpus);
  uint64_t array = options.array_bytes;
  if (array == 0) {
    array = std::max(caches * kCacheTimes, kLeastArray);
    if (const uint64_t free = FreeMemory(options.proc); free > 0) {
      array = std::min(array, free / kShareOfMemory);
    }
  }
  if (array < kTooSmall) return Status(Code::kLimit, "too little memory is free for three arrays");
  peaks.allowed = static_cast<uint32_t>(cpus.size());
  peaks.array_bytes = static_cast<double>(array);
  peaks.last_cache_bytes = static_cast<double>(caches);
  peaks.host = sonde::HostName();
  peaks.host.resize(std::min(peaks.host.find('.'), peaks.host.size()));
  peaks.time = std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count();
  const Measuring measuring(options, array);
  std::string vectors_of_one;
  const std::vector<int> first = {cpus.front()};
  SONDE_RETURN_IF_ERROR(measuring.Memory(cpus, peaks.all.bytes_per_second));
  SONDE_RETURN_IF_ERROR(measuring.Arithmetic(cpus, peaks.all, peaks.vectors));
  if (cpus.size() == 1) {
    peaks.one = peaks.all;
    return peaks;
  }
  SONDE_RETURN_IF_ERROR(measuring.Memory(first, peaks.one.bytes_per_second));
  SONDE_RETURN_IF_ERROR(measuring.Arithmetic(first, peaks.one, vectors_of_one));
  for (const auto rate : {&insight::Peaks::bytes_per_second, &insight::Peaks::double_flops,
                          &insight::Peaks::single_flops}) {
    peaks.all.*rate = std::max(peaks.all.*rate, peaks.one.*rate);
  }
  return peaks;
}

}  // namespace sonde::cli::peaks
