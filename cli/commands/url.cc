// sonde url: the address of a running step's page.
#include <fmt/core.h>

#include "cli/command.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/model/text.h"
#include "serve/head_client.h"

namespace sonde::cli {
namespace {

int Url(const std::string& id, const Environment& env) {
  const auto archive = OpenArchive(env, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto running = FindRunning(*archive->reader, id);
  if (!running.ok()) return Fail(running.status());
  const Endpoint& endpoint = running->endpoint;
  const std::string host = text::Printable(endpoint.host);
  const std::string url = fmt::format("http://localhost:{}/?token={}", endpoint.port,
                                      serve::PercentEncode(endpoint.token));
  const std::string where = endpoint.host == HostName() ? "here" : "on " + host;
  return Print(
      fmt::format("{}\n\nThat is {}. From another machine, first run there\n\n"
                  "  ssh -NL {}:localhost:{} {}@{}\n\nand then open the same address. "
                  "The token in it is a password: do not pass it on.\n",
                  url, where, endpoint.port, endpoint.port, env.user, host));
}

}  // namespace

void RegisterUrl(Arguments app, Run& run) {
  auto id = std::make_shared<std::string>();
  Arguments sub = app.Command("url", "Say where a running step can be watched");
  sub.Option("JOB[.STEP]", *id, "As in 123, 123.0 or 123.batch").Required();
  sub.OnRead([id, &run] { run = [id](const Environment& env) { return Url(*id, env); }; });
}

}  // namespace sonde::cli
