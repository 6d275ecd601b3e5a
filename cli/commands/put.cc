// sonde put: a script's own metrics in the record of its job step.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/command.h"
#include "cli/tell.h"
#include "libclient/layout.h"
#include "libclient/sonde.h"

namespace sonde::cli {
namespace {

struct Options {
  bool add = false;
  bool strict = false;
  int level = 0;
  std::string unit;
  std::vector<std::pair<std::string, std::string>> tags;
  std::vector<std::pair<std::string, double>> values;
};

Status AddTag(Options& options, std::string_view text) {
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

int Put(const Options& options) {
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

void RegisterPut(CLI::App& app, Run& run) {
  const auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("put", "Record a script's own metrics in its step");
  sub->add_flag("--add", options->add, "Add to counters instead of setting gauges");
  AddChecked(*sub, "--unit", "Such as seconds, bytes or 1", [options](const std::string& text) {
    options->unit = text;
    return CheckUnit(text);
  })->type_name("UNIT");
  sub->add_option_function<std::vector<std::string>>(
         "--tag",
         [options](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             const Status status = AddTag(*options, text);
             if (!status.ok()) throw CLI::ValidationError("--tag", std::string(status.message()));
           }
         },
         "A tag of the series; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  sub->add_option("--level", options->level, "The telemetry level from which they are recorded")
      ->type_name("1..4")
      ->check(CLI::Range(1, 4));
  sub->add_flag("--strict", options->strict, std::string(kStrictHelp));
  const auto texts = std::make_shared<std::vector<std::string>>();
  sub->add_option("VALUES", *texts, "Metrics and their numbers")
      ->required()
      ->type_name("NAME=VALUE");
  sub->callback([options, texts, &run] {
    for (const std::string& text : *texts) {
      auto value = ParseAssignment(text);
      if (!value.ok()) throw CLI::ValidationError("put", std::string(value.status().message()));
      if (options->add && value->second < 0) {
        throw CLI::ValidationError("put", fmt::format("'{}': a counter only grows; expected a "
                                                      "number that is not negative",
                                                      text));
      }
      options->values.push_back(*std::move(value));
    }
    run = [options](const Environment&) { return Put(*options); };
  });
}

}  // namespace sonde::cli
