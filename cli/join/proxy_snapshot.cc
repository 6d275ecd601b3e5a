#include "cli/join/proxy_snapshot.h"

#include <fmt/core.h>

#include <cmath>
#include <optional>
#include <set>

#include "cli/join/exposition.h"
#include "profiles/json/parse.h"

namespace sonde::join {
namespace {

namespace json = boost::json;

constexpr std::string_view kMain = "main";

std::string_view View(json::string_view text) { return {text.data(), text.size()}; }

std::optional<double> NumberIn(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(json::string_view(key.data(), key.size()));
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

struct Counter {
  std::string name;  // with its labels
  std::string help;
  std::string_view type;
  double value = 0;
};

// Nothing for what is no counter, or has no value yet.
std::optional<Counter> CounterOf(const json::value& value) {
  const json::object* object = value.if_object();
  const json::value* name = object == nullptr ? nullptr : object->if_contains("name");
  const json::value* kind = object == nullptr ? nullptr : object->if_contains("ctype");
  if (name == nullptr || !name->is_string() || kind == nullptr || !kind->is_object()) return {};
  Counter counter;
  counter.name = View(name->get_string());
  constexpr std::string_view kOneTooMany = "\"\"}";
  if (counter.name.ends_with(kOneTooMany)) counter.name.erase(counter.name.size() - 2, 1);
  if (const json::value* help = object->if_contains("doc"); help != nullptr && help->is_string()) {
    counter.help = View(help->get_string());
  }
  if (const json::value* one = kind->get_object().if_contains("Counter");
      one != nullptr && one->is_object()) {
    const std::optional<double> number = NumberIn(one->get_object(), "value");
    if (!number) return {};
    counter.type = "counter";
    counter.value = *number;
    return counter;
  }
  const json::value* gauge = kind->get_object().if_contains("Gauge");
  if (gauge == nullptr || !gauge->is_object()) return {};
  const std::optional<double> hits = NumberIn(gauge->get_object(), "hits");
  const std::optional<double> total = NumberIn(gauge->get_object(), "total");
  if (!hits || !total || *hits == 0) return {};
  counter.type = "gauge";
  counter.value = *total / *hits;
  return counter;
}

bool IsSampleOf(const std::string& line, const std::string& name) {
  Exposition exposition(line);
  const Result<std::optional<Sample>> sample = exposition.Next();
  return sample.ok() && *sample && (*sample)->series == name && exposition.Explain(**sample).ok();
}

std::string Escaped(std::string_view help) {
  std::string out;
  for (const char c : help) out += c == '\n' ? "\\n" : c == '\\' ? "\\\\" : std::string(1, c);
  return out;
}

Result<std::string> OfJob(const json::value& job) {
  const json::object* object = job.if_object();
  const json::value* counters = object == nullptr ? nullptr : object->if_contains("counters");
  if (counters == nullptr || !counters->is_array()) {
    return Status(Code::kCorrupt, R"(expected {"desc": ..., "counters": [...]})");
  }
  std::string out;
  std::set<std::string> families;
  for (const json::value& one : counters->get_array()) {
    const std::optional<Counter> counter = CounterOf(one);
    if (!counter || !std::isfinite(counter->value)) continue;
    const std::string line = fmt::format("{} {}\n", counter->name, counter->value);
    if (!IsSampleOf(line, counter->name)) continue;
    std::string family = counter->name.substr(0, counter->name.find('{'));
    if (families.insert(family).second) {
      out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", family, Escaped(counter->help), family,
                         counter->type);
    }
    out += line;
  }
  return out;
}

bool IsMain(const json::value& job) {
  const json::object* object = job.if_object();
  const json::value* about = object == nullptr ? nullptr : object->if_contains("desc");
  const json::value* id =
      about == nullptr || !about->is_object() ? nullptr : about->get_object().if_contains("jobid");
  return id != nullptr && id->is_string() && View(id->get_string()) == kMain;
}

}  // namespace

bool IsSnapshot(std::string_view body) {
  const size_t first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (body[first] == '{' || body[first] == '[');
}

Result<std::string> ExpositionOf(std::string_view snapshot) {
  const Result<json::value> value = ParseJson(snapshot, "what a metric-proxy serves");
  if (!value.ok()) return value.status();
  const json::array* jobs = value->if_array();
  if (jobs == nullptr) return OfJob(*value);
  for (const json::value& job : *jobs) {
    if (IsMain(job)) return OfJob(job);
  }
  if (jobs->empty()) return Status(Code::kCorrupt, "a list without jobs");
  return OfJob(jobs->front());
}

}  // namespace sonde::join
