// sonde url: where a running step can be watched.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/head_client.h"
#include "profiles/archive_dir.h"
#include "profiles/text.h"

namespace sonde::cli {
namespace {

int Url(const std::string& id, const Environment& env) {
  const auto archive = OpenArchive(env, Archive::For::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto running = FindRunning(**archive, id);
  if (!running.ok()) return Fail(running.status());
  const Endpoint& endpoint = running->endpoint;
  const std::string host = text::Printable(endpoint.host);
  const std::string url =
      fmt::format("http://localhost:{}/?token={}", endpoint.port, PercentEncode(endpoint.token));
  const std::string where = endpoint.host == HostName() ? "here" : "on " + host;
  return Print(
      fmt::format("{}\n\nThat is {}. From another machine, first run there\n\n"
                  "  ssh -NL {}:localhost:{} {}@{}\n\nand then open the same address. "
                  "The token in it is a password: do not pass it on.\n",
                  url, where, endpoint.port, endpoint.port, env.user, host));
}

}  // namespace

void RegisterUrl(CLI::App& app, Run& run) {
  auto id = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("url", "Say where a running step can be watched");
  sub->add_option("JOB[.STEP]", *id, "As in 123, 123.0 or 123.batch")->required();
  sub->callback([id, &run] { run = [id](const Environment& env) { return Url(*id, env); }; });
}

}  // namespace sonde::cli
