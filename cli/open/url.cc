// sonde url: the address of a running step's page.
#include "cli/command.h"
#include "cli/open/way.h"

namespace sonde::cli {
namespace {

int Url(const std::string& id, const Environment& env) {
  const auto archive = OpenArchive(env, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto running = FindRunning(*archive->reader, id);
  if (!running.ok()) return Fail(running.status());
  const Endpoint& endpoint = running->endpoint;
  return Print(Told(WayTo(endpoint, LookAround(env.user)), endpoint));
}

}  // namespace

void RegisterUrl(Arguments app, Run& run) {
  auto id = std::make_shared<std::string>();
  Arguments sub = app.Command("url", "Say where a running step can be watched");
  sub.Option("JOB[.STEP]", *id, "As in 123, 123.0 or 123.batch").Required();
  sub.OnRead([id, &run] { run = [id](const Environment& env) { return Url(*id, env); }; });
}

}  // namespace sonde::cli
