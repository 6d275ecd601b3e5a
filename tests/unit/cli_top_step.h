// A step for the tests of `sonde top`: it answers the questions of a Model as a head would, from a
// function that says what each series has.
#pragma once

#include <fmt/core.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/top/layout.h"
#include "cli/top/model.h"
#include "profiles/json/writer.h"
#include "profiles/model/profile.h"

namespace sonde::cli::top {

inline constexpr Nanos kTopStart = 1'800'000'000 * kSecond;  // 2027-01-15 08:00:00 UTC

class TopStep {
 public:
  // Of a series: rates and gauges as the question wants them; nothing: no such series.
  using Value = std::function<std::optional<double>(std::string_view metric,
                                                    const std::string& host, int task)>;

  explicit TopStep(size_t nodes, uint32_t tasks_of_node = 2) {
    JobDescription& job = profile.job;
    job.id = {"4711", "0"};
    job.name = "heat";
    job.command = "./mpi_heat -t 8";
    job.user = "ada";
    job.level = 2;
    job.period = kSecond;
    job.start = kTopStart;
    job.expected_nodes = static_cast<uint32_t>(nodes);
    job.expected_tasks = static_cast<uint32_t>(nodes * tasks_of_node);
    job.coverage = {100, 100, 0};
    JobRequest request;
    request.time_limit = 600 * kSecond;
    job.request = request;
    for (size_t i = 0; i < nodes; ++i) {
      NodeInfo node;
      node.host = fmt::format("n{}", i + 1);
      node.node_id = static_cast<uint32_t>(i);
      node.tasks = tasks_of_node;
      node.joined = kTopStart;
      job.nodes.push_back(std::move(node));
    }
    for (const char* name :
         {"task_cpu_seconds_total", "task_resident_memory_bytes", "mpi_wait_seconds_total",
          "node_network_receive_bytes_total", "node_network_transmit_bytes_total",
          "task_read_bytes_total", "task_written_bytes_total", "node_memory_allocated_bytes",
          "task_processor", "sonde_samples_total"}) {
      Has(name);
    }
  }
  void Has(const std::string& metric) {
    FootprintEntry entry;
    entry.series.metric.name = metric;
    profile.footprint.push_back(std::move(entry));
  }

  // Each series gives one point a second, the newest at `now`.
  Result<std::string> Answer(const Ask& ask, Nanos now) const {
    if (!failure.ok()) return failure;
    if (ask.kind == Ask::Kind::kProfile) return ProfileToJson(profile);
    if (ask.kind == Ask::Kind::kAlarms) return alarms;
    const boost::json::value body = boost::json::parse(ask.body);
    std::string out;
    JsonWriter w(out);
    w.BeginArray();
    for (const boost::json::value& query : body.at("queries").as_array())
      Write(query, body, now, w);
    w.EndArray();
    return out;
  }
  // Asks and answers until nothing is open.
  void Run(Model& model, const View& view, Nanos now, size_t width = 0) {
    for (int round = 0; round < 10; ++round) {
      const std::vector<Ask> due = model.Due(view, width, now);
      if (due.empty()) return;
      for (const Ask& ask : due) {
        asked.push_back(ask);
        model.Take(ask, Answer(ask, now), now);
      }
    }
  }
  size_t Count(Ask::Kind kind) const {
    size_t count = 0;
    for (const Ask& ask : asked) count += ask.kind == kind ? 1 : 0;
    return count;
  }

  Profile profile;
  Value value = [](std::string_view metric, const std::string&, int task) {
    return Usual(metric, task);
  };
  // Of the whole step over time, for plots.
  std::function<double(Nanos)> over_time;
  std::string alarms = "{\"main\":[]}";
  Status failure;
  std::vector<Ask> asked;

  static std::optional<double> Usual(std::string_view metric, int task) {
    if (metric == "task_cpu_seconds_total") return 0.97;
    if (metric == "task_resident_memory_bytes") return 256.0 * (1 << 20);
    if (metric == "mpi_wait_seconds_total") return 0.05;
    if (metric == "node_network_receive_bytes_total") return 1.5e6;
    if (metric == "node_network_transmit_bytes_total") return 2.5e6;
    if (metric == "task_read_bytes_total") return 0;
    if (metric == "task_written_bytes_total") return 4096;
    if (metric == "node_memory_allocated_bytes") return 2.0 * (1 << 30);
    if (metric == "task_processor") return task;
    if (metric == "sonde_samples_total") return 60;
    return std::nullopt;
  }

 private:
  struct Filters {
    std::string hosts;  // "": the whole step
    bool by_task = false;
    bool by_core = false;
  };
  static bool OfTasks(std::string_view metric) {
    return metric.starts_with("task_") || metric.starts_with("mpi_");
  }

  void Write(const boost::json::value& query, const boost::json::value& body, Nanos now,
             JsonWriter& w) const {
    const std::string metric(query.at("metric").as_string());
    Filters filters;
    for (const boost::json::value& filter : query.at("filters").as_array()) {
      const std::string key(filter.at("tagk").as_string());
      if (key == "host") filters.hosts = std::string(filter.at("filter").as_string());
      if (key == "task") filters.by_task = true;
      if (key == "cpu") filters.by_core = true;
    }
    const bool over = body.at("start").is_number() && over_time != nullptr;
    double whole = 0;
    bool any = false;
    uint32_t first_task = 0;
    for (const NodeInfo& node : profile.job.nodes) {
      const uint32_t tasks = node.tasks;
      const std::string around = "|" + filters.hosts + "|";
      const bool wanted = filters.hosts.empty() || filters.hosts == "*" ||
                          around.find("|" + node.host + "|") != std::string::npos;
      if (wanted) {
        double sum = 0;
        bool has = false;
        for (uint32_t t = 0; t < (OfTasks(metric) ? tasks : 1); ++t) {
          const auto one = value(metric, node.host, static_cast<int>(first_task + t));
          if (!one) continue;
          has = true;
          sum += *one;
          if (filters.by_task) {
            WriteOne(metric, node.host, std::to_string(first_task + t), "", *one, now, over, w);
          }
        }
        if (filters.by_core) {
          for (int cpu = 0; cpu < 2; ++cpu) {
            WriteOne(metric, node.host, "", std::to_string(cpu), cpu == 0 ? 0.25 : 1, now, over, w);
          }
        } else if (has && !filters.by_task && !filters.hosts.empty()) {
          WriteOne(metric, node.host, "", "", sum, now, over, w);
        }
        whole += sum;
        any = any || has;
      }
      first_task += tasks;
    }
    if (filters.hosts.empty() && any) WriteOne(metric, "", "", "", whole, now, over, w);
  }
  void WriteOne(const std::string& metric, const std::string& host, const std::string& task,
                const std::string& cpu, double number, Nanos now, bool over, JsonWriter& w) const {
    const auto one = [&](const std::string& mode, double part) {
      w.BeginObject().Field("metric", metric).Key("tags").BeginObject();
      if (!host.empty()) w.Field("host", host);
      if (!task.empty()) w.Field("task", task);
      if (!cpu.empty()) w.Field("cpu", cpu).Field("mode", mode);
      w.EndObject().Key("dps").BeginArray();
      const Nanos from = over ? profile.job.start : now - kSecond;
      for (Nanos time = from; time <= now; time += kSecond) {
        w.BeginArray().Value(time / kMillisecond).Value(over ? over_time(time) : part).EndArray();
      }
      w.EndArray().EndObject();
    };
    if (cpu.empty()) return one("", number);
    one("user", number);
    one("idle", 1 - number);
  }
};

// The lines of a frame.
inline std::vector<std::string> LinesOf(const Screen& screen) {
  std::vector<std::string> lines;
  std::istringstream text(screen.ToText());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}
inline Screen Frame(const Model& model, View& view, const Look& look) {
  view.page = PageOf(model, view, look);
  ShowCursor(model, view);
  return Draw(model, view, look);
}
inline Key Pressed(char letter) { return {Key::Kind::kLetter, letter, false}; }
inline Key Pressed(Key::Kind kind) { return {kind, 0, false}; }

}  // namespace sonde::cli::top
