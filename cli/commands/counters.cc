// sonde pause counters, sonde resume counters: leaves the processors' counters of a running step to
// a profiler, and takes them back.
#include <fmt/core.h>

#include "cli/command.h"
#include "profiles/json/writer.h"
#include "serve/head_client.h"

namespace sonde::cli {
namespace {

constexpr Nanos kCountersTimeout = 5 * kSecond;

int Pause(std::string id, bool paused, const Environment& env) {
  if (id.empty()) id = OwnStep();
  if (id.empty()) {
    Note("which step? Outside of a job its name is needed, as in 123 or 123.0");
    return kUsage;
  }
  const auto archive = OpenArchive(env, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto running = FindRunning(*archive->reader, id);
  if (!running.ok()) return Fail(running.status());
  const std::string step = running->job.id.ToString();
  std::string json;
  JsonWriter(json).BeginObject().Field("job", step).Field("paused", paused).EndObject();
  const auto answer =
      serve::TellHead(running->endpoint, "/api/v1/counters", json, kCountersTimeout);
  if (!answer.ok()) return Fail(answer.status());
  return Print(
      fmt::format("{}: the processors' counters are {}\n", step,
                  paused ? "left to others, until 'sonde resume counters'" : "counted again"));
}

void Add(Arguments app, Run& run, const char* verb, const char* help, bool paused) {
  Arguments sub = app.Command(verb, help);
  sub.RequireCommand();
  auto id = std::make_shared<std::string>();
  Arguments what = sub.Command("counters", help);
  what.Option("JOB[.STEP]", *id, "As in 123 or 123.0; in a job the default is its own step");
  what.OnRead([id, paused, &run] {
    run = [id, paused](const Environment& env) { return Pause(*id, paused, env); };
  });
}

}  // namespace

void RegisterPause(Arguments app, Run& run) {
  Add(app, run, "pause", "Leave the processors' counters of a running step to a profiler", true);
}
void RegisterResume(Arguments app, Run& run) {
  Add(app, run, "resume", "Count again what was paused", false);
}

}  // namespace sonde::cli
