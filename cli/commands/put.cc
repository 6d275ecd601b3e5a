// sonde put: a script's own metrics in the record of its job step.
#include <fmt/core.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/tell.h"
#include "libclient/layout.h"
#include "libclient/sonde.h"

namespace sonde::cli {
namespace {

struct PutOptions {
  bool add = false;
  bool strict = false;
  int level = 0;
  std::string unit;
  std::vector<std::pair<std::string, std::string>> tags;
  std::vector<std::pair<std::string, double>> values;
};

Status AddTag(PutOptions& options, std::string_view text) {
  auto tag = ParseTag(text);
  if (!tag.ok()) return tag.status();
  for (const auto& [key, value] : options.tags) {
    if (key == tag->first) return {Code::kInvalid, fmt::format("'{}' is given twice", key)};
  }
  if (options.tags.size() == client::kMaxAppTags) {
    return {Code::kInvalid, fmt::format("at most {} tags", client::kMaxAppTags)};
  }
  options.tags.push_back(*std::move(tag));
  return {};
}

int Put(const PutOptions& options) {
  std::vector<sonde_tag_t> tags;
  for (const auto& [key, value] : options.tags) tags.push_back({key.c_str(), value.c_str()});
  const auto make = options.add ? &sonde_counter : &sonde_gauge;
  int code = kDone;
  for (const auto& [name, value] : options.values) {
    sonde_metric_t* const metric =
        make(name.c_str(), options.unit.c_str(), nullptr, options.level, tags.data(), tags.size());
    code = std::max(code, Told(name, sonde_status(), options.strict));
    if (options.add) {
      sonde_add(metric, value);
    } else {
      sonde_set(metric, value);
    }
  }
  return code;
}

}  // namespace

void RegisterPut(Arguments app, Run& run) {
  const auto options = std::make_shared<PutOptions>();
  Arguments sub = app.Command("put", "Record a script's own metrics in its step");
  sub.Flag("--add", options->add, "Add to counters instead of setting gauges");
  sub.Checked("--unit", "Such as seconds, bytes or 1",
              [options](const std::string& text) {
                options->unit = text;
                return CheckUnit(text);
              })
      .Type("UNIT");
  sub.CheckedEach("--tag", "A tag of the series; may be repeated",
                  [options](const std::string& text) { return AddTag(*options, text); })
      .Type("KEY=VALUE");
  sub.Option("--level", options->level, "The telemetry level from which they are recorded")
      .Type("1..4")
      .Within(1, 4);
  sub.Flag("--strict", options->strict, std::string(kStrictHelp));
  const auto texts = std::make_shared<std::vector<std::string>>();
  sub.Option("VALUES", *texts, "Metrics and their numbers").Required().Type("NAME=VALUE");
  sub.OnRead("put", [options, texts, &run]() -> Status {
    for (const std::string& text : *texts) {
      auto value = ParseAssignment(text);
      if (!value.ok()) return value.status();
      if (options->add && value->second < 0) {
        return {Code::kInvalid,
                fmt::format("'{}': a counter only grows; expected a number that is not negative",
                            text)};
      }
      options->values.push_back(*std::move(value));
    }
    run = [options](const Environment&) { return Put(*options); };
    return {};
  });
}

}  // namespace sonde::cli
