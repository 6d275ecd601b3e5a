// An application for the tests of libsonde: carries out the commands it reads from standard input,
// one a line, and answers each with one line. See kCommands for the list.
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sonde.h"

namespace {

std::map<std::string, sonde_metric_t*> metrics;

// Registered before main(), as a library's constructor might.
sonde_metric_t* const early =
    getenv("EARLY") == nullptr ? nullptr : sonde_gauge("early", nullptr, nullptr, 0, nullptr, 0);

using Registering = sonde_metric_t* (*)(const char*, const char*, const char*, int,
                                        const sonde_tag_t*, size_t);

// NAME [LEVEL [KEY=VALUE...]]
std::string Register(std::istream& in, Registering function) {
  std::string name, word;
  int level = 0;
  in >> name >> level;
  std::vector<std::pair<std::string, std::string>> texts;
  while (in >> word)
    texts.emplace_back(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
  std::vector<sonde_tag_t> tags;
  for (const auto& [key, value] : texts) tags.push_back({key.c_str(), value.c_str()});
  sonde_metric_t* metric = function(name.c_str(), "1", "help", level, tags.data(), tags.size());
  const bool same = metrics.contains(name) && metrics[name] == metric;
  metrics[name] = metric;
  return std::to_string(sonde_status()) + (metric == nullptr ? " null" : same ? " same" : " new");
}

// So many threads, all alive until all have done their work.
void RunTogether(int count, const std::function<void(int thread)>& work) {
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, static_cast<unsigned>(count));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      work(i);
      pthread_barrier_wait(&barrier);
    });
  }
  for (std::thread& thread : threads) thread.join();
  pthread_barrier_destroy(&barrier);
}

// COUNT ADDS NAME: so many threads, each adding 1 so often.
std::string Threads(std::istream& in) {
  int count = 0, adds = 0;
  std::string name;
  in >> count >> adds >> name;
  RunTogether(count, [&](int) {
    for (int k = 0; k < adds; ++k) sonde_add(metrics[name], 1);
  });
  return "ok";
}

// COUNT OBSERVATIONS NAME...: so many threads, thread i observing 2^(i % 8) so often.
std::string Observers(std::istream& in) {
  int count = 0, observations = 0;
  in >> count >> observations;
  std::vector<sonde_metric_t*> all;
  for (std::string name; in >> name;) all.push_back(metrics[name]);
  RunTogether(count, [&](int i) {
    for (int k = 0; k < observations; ++k) {
      for (sonde_metric_t* metric : all) sonde_observe(metric, 1 << i % 8);
    }
  });
  return "ok";
}

// COUNT TIMES: so many threads, each telling a remark of its own, a figure and a phase so often;
// how many calls went well.
std::string Tellers(std::istream& in) {
  int count = 0, times = 0;
  in >> count >> times;
  std::atomic<int> good = 0;
  RunTogether(count, [&](int i) {
    const std::string remark = "remark of thread " + std::to_string(i);
    for (int k = 0; k < times; ++k) {
      good += sonde_annotate(remark.c_str()) == SONDE_OK ? 1 : 0;
      good += sonde_phase_begin("together") == SONDE_OK ? 1 : 0;
      good += sonde_figure("figure", k, "1") == SONDE_OK ? 1 : 0;
      good += sonde_phase_end("together") == SONDE_OK ? 1 : 0;
    }
  });
  return std::to_string(good);
}

// What a moment came to: its code, and why.
std::string Told(int code) { return std::to_string(code) + " " + sonde_error(); }

std::string Rest(std::istream& in) {
  std::string text;
  std::getline(in >> std::ws, text);
  return text;
}

std::string Remark(std::istream& in) { return Told(sonde_annotate(Rest(in).c_str())); }
std::string PhaseBegin(std::istream& in) { return Told(sonde_phase_begin(Rest(in).c_str())); }
std::string PhaseEnd(std::istream& in) { return Told(sonde_phase_end(Rest(in).c_str())); }

// NAME VALUE UNIT
std::string Figure(std::istream& in) {
  std::string name, value;
  in >> name >> value;
  return Told(sonde_figure(name.c_str(), strtod(value.c_str(), nullptr), Rest(in).c_str()));
}

// A child that inherits an open phase and tells a remark; 0 if its end of that phase was refused.
std::string ForkMoments(std::istream&) {
  const pid_t child = fork();
  if (child == 0) {
    const bool good =
        sonde_annotate("child") == SONDE_OK && sonde_phase_end("outer") == SONDE_INVALID;
    _exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return std::to_string(status);
}

std::string LastError(std::istream&) { return sonde_error(); }

// COUNTER GAUGE [HISTOGRAM]: a child that updates its parent's metrics, and one that attaches
// itself first.
std::string Fork(std::istream& in) {
  std::string counter, gauge, histogram;
  in >> counter >> gauge >> histogram;
  std::string result;
  for (const bool attach : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      const int status = attach ? sonde_init() : 0;
      sonde_set(metrics[gauge], attach ? 7 : 1000);
      sonde_observe(metrics[histogram], attach ? 7 : 1000);
      std::thread([&] { sonde_add(metrics[counter], attach ? 5 : 1000); }).join();
      _exit(status);
    }
    int status = -1;
    waitpid(child, &status, 0);
    result += std::to_string(status) + " ";
  }
  return result;
}

long ResidentKiB() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

// KIND COUNT: registers and updates them; how many could be had, the status of the last, and by how
// many KiB the process grew.
std::string Many(std::istream& in) {
  std::string kind;
  int count = 0, had = 0;
  in >> kind >> count;
  const long before = ResidentKiB();
  for (int i = 0; i < count; ++i) {
    const std::string name = "application_metric_number_" + std::to_string(i);
    const sonde_tag_t tag = {"phase", "main"};
    const Registering function = kind == "counter"     ? &sonde_counter
                                 : kind == "histogram" ? &sonde_histogram
                                                       : &sonde_gauge;
    sonde_metric_t* metric =
        function(name.c_str(), "seconds", "Time spent in one phase of the application", 0, &tag, 1);
    if (metric != nullptr) ++had;
    sonde_set(metric, i);
    sonde_add(metric, 1);
    sonde_observe(metric, i);
  }
  return std::to_string(had) + " " + std::to_string(sonde_status()) + " " +
         std::to_string(ResidentKiB() - before);
}

// Two threads that set and register while a third forks again and again.
std::string Stress(std::istream&) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) {
        const std::string name = "stress_" + std::to_string(t) + "_" + std::to_string(i % 50);
        sonde_set_at(sonde_gauge(name.c_str(), "1", "", 0, nullptr, 0), i, i);
        sonde_add(sonde_counter("stress_total", "1", "", 0, nullptr, 0), 1);
      }
    });
  }
  int good = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(sonde_gauge("child", "1", "", 0, nullptr, 0) == nullptr ? 1 : 0);
    int status = -1;
    waitpid(child, &status, 0);
    good += status == 0 ? 1 : 0;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return std::to_string(good);
}

// COUNT NAME: so many threads, one after the other, each adding 1 to a counter or observing it; by
// how many KiB the process grew.
std::string Sequence(std::istream& in) {
  int count = 0;
  std::string name;
  in >> count >> name;
  sonde_metric_t* const metric = metrics[name];
  const auto run = [&] {
    std::thread([&] {
      sonde_add(metric, 1);
      sonde_observe(metric, 1);
    }).join();
  };
  run();
  const long before = ResidentKiB();
  for (int i = 1; i < count; ++i) run();
  return std::to_string(ResidentKiB() - before);
}

std::string Update(std::istream& in, const std::function<void(sonde_metric_t*, double)>& update) {
  std::string name, value;
  in >> name >> value;
  update(metrics[name], strtod(value.c_str(), nullptr));
  return "ok";
}

std::string SetAt(std::istream& in) {
  std::string name;
  double value = 0;
  int64_t time = 0;
  in >> name >> value >> time;
  sonde_set_at(metrics[name], value, time);
  return "ok";
}

// NAME VALUE TIME
std::string SetPast(std::istream& in) {
  std::string name;
  double value = 0;
  int64_t time = 0;
  in >> name >> value >> time;
  return Told(sonde_set_past(metrics[name], value, time));
}

// As SetPast, by a child.
std::string ForkPast(std::istream& in) {
  const pid_t child = fork();
  if (child == 0) {
    SetPast(in);
    _exit(sonde_status());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return std::to_string(status);
}

// NAME COUNT: so many values, of the first seconds of this day.
std::string SetPastOften(std::istream& in) {
  std::string name;
  int count = 0;
  in >> name >> count;
  const int64_t today = time(nullptr) / 86'400 * 86'400;
  for (int i = 0; i < count; ++i)
    sonde_set_past(metrics[name], i, (today + i % 60) * 1'000'000'000);
  return "ok";
}

// NAME COUNT TIMES: so many threads, each that often, values 0, 1, 2...
std::string SetPastTogether(std::istream& in) {
  std::string name;
  int count = 0, times = 0;
  in >> name >> count >> times;
  const int64_t now = time(nullptr);
  RunTogether(count, [&](int) {
    for (int k = 0; k < times; ++k) sonde_set_past(metrics[name], k, now * 1'000'000'000);
  });
  return "ok";
}

std::string Nan(std::istream& in) {
  std::string name;
  in >> name;
  sonde_add(metrics[name], __builtin_nan(""));
  sonde_add(metrics[name], -1);
  return "ok";
}

// What a daemonizing library does to descriptors it knows nothing of.
std::string CloseDescriptors(std::istream&) {
  for (int fd = 3; fd < 64; ++fd) close(fd);
  for (int fd = 3; fd < 64; ++fd) open("/dev/null", O_RDONLY | O_CLOEXEC);
  return "ok";
}

std::string CountDescriptors(std::istream&) {
  int count = 0;
  for (int fd = 3; fd < 64; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return std::to_string(count);
}

std::string LimitFiles(std::istream&) {
  const rlimit limit = {1 << 20, 1 << 20};
  return std::to_string(setrlimit(RLIMIT_FSIZE, &limit));
}

std::string Init(std::istream&) { return std::to_string(sonde_init()); }

std::string Finalize(std::istream&) {
  sonde_finalize();
  return std::to_string(sonde_init());
}

std::string SetEarly(std::istream&) {
  sonde_set(early, 42);
  return early == nullptr ? "null" : "ok";
}

const std::map<std::string, std::function<std::string(std::istream&)>> kCommands = {
    {"init", Init},
    {"gauge", [](std::istream& in) { return Register(in, &sonde_gauge); }},
    {"counter", [](std::istream& in) { return Register(in, &sonde_counter); }},
    {"histogram", [](std::istream& in) { return Register(in, &sonde_histogram); }},
    {"observe", [](std::istream& in) { return Update(in, &sonde_observe); }},
    {"observers", Observers},
    {"remark", Remark},
    {"begin", PhaseBegin},
    {"end", PhaseEnd},
    {"figure", Figure},
    {"tellers", Tellers},
    {"fork_moments", ForkMoments},
    {"error", LastError},
    {"set", [](std::istream& in) { return Update(in, &sonde_set); }},
    {"add", [](std::istream& in) { return Update(in, &sonde_add); }},
    {"set_at", SetAt},
    {"set_past", SetPast},
    {"set_past_often", SetPastOften},
    {"fork_past", ForkPast},
    {"set_past_together", SetPastTogether},
    {"nan", Nan},
    {"early", SetEarly},
    {"threads", Threads},
    {"sequence", Sequence},
    {"fork", Fork},
    {"many", Many},
    {"stress", Stress},
    {"close", CloseDescriptors},
    {"descriptors", CountDescriptors},
    {"limit_files", LimitFiles},
    {"finalize", Finalize},
};

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string command;
    in >> command;
    const auto found = kCommands.find(command);
    std::cout << (found == kCommands.end() ? "unknown command" : found->second(in)) << std::endl;
  }
  return 0;
}
