// sonde pause counters, sonde resume counters: leaves the processors' counters of a running step to
// a profiler, and takes them back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/head_client.h"
#include "profiles/json_writer.h"

namespace sonde::cli {
namespace {

constexpr Nanos kTimeout = 5 * kSecond;

int Pause(std::string id, bool paused, const Environment& env) {
  if (id.empty()) id = OwnStep();
  if (id.empty()) {
    Note("which step? Outside of a job its name is needed, as in 123 or 123.0");
    return kUsage;
  }
  const auto archive = OpenArchive(env, Archive::For::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto running = FindRunning(**archive, id);
  if (!running.ok()) return Fail(running.status());
  const std::string step = running->job.id.ToString();
  std::string json;
  JsonWriter(json).BeginObject().Field("job", step).Field("paused", paused).EndObject();
  const auto answer = TellHead(running->endpoint, "/api/v1/counters", json, kTimeout);
  if (!answer.ok()) return Fail(answer.status());
  return Print(
      fmt::format("{}: the processors' counters are {}\n", step,
                  paused ? "left to others, until 'sonde resume counters'" : "counted again"));
}

void Add(CLI::App& app, Run& run, const char* verb, const char* help, bool paused) {
  CLI::App* sub = app.add_subcommand(verb, help);
  sub->require_subcommand(1);
  auto id = std::make_shared<std::string>();
  CLI::App* what = sub->add_subcommand("counters", help);
  what->add_option("JOB[.STEP]", *id, "As in 123 or 123.0; in a job the default is its own step");
  what->callback([id, paused, &run] {
    run = [id, paused](const Environment& env) { return Pause(*id, paused, env); };
  });
}

}  // namespace

void RegisterPause(CLI::App& app, Run& run) {
  Add(app, run, "pause", "Leave the processors' counters of a running step to a profiler", true);
}
void RegisterResume(CLI::App& app, Run& run) {
  Add(app, run, "resume", "Count again what was paused", false);
}

}  // namespace sonde::cli
