// sonde url: the address of a running step's page, or of the site's.
#include "cli/command.h"
#include "cli/open/site_url.h"
#include "cli/open/way.h"
#include "serve/site/serve_site.h"

namespace sonde::cli {
namespace {

struct UrlOptions {
  std::string id;
  bool site = false;
  bool token = false;
  std::string socket{site::kDefaultSocket};
  bool socket_given = false;
};

int UrlOfStep(const std::string& id, const Environment& env) {
  const auto archive = OpenArchive(env, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto running = FindRunning(*archive->reader, id);
  if (!running.ok()) return Fail(running.status());
  const Endpoint& endpoint = running->endpoint;
  return Print(Told(WayTo(endpoint, LookAround(env.user)), endpoint));
}

int UrlOfSite(const UrlOptions& options, const Environment& env) {
  const Result<std::string> token = SiteToken(options.socket);
  if (!token.ok()) return Fail(token.status());
  return Print(options.token ? *token + "\n"
                             : ToldOfSite(options.socket, *token, LookAround(env.user)));
}

int Url(const UrlOptions& options, const Environment& env) {
  if (options.site != options.id.empty()) {
    return FailUsage("expected either a step, as in sonde url 123.0, or --site");
  }
  if (!options.site && (options.token || options.socket_given)) {
    return FailUsage("--token and --socket go with --site");
  }
  return options.site ? UrlOfSite(options, env) : UrlOfStep(options.id, env);
}

}  // namespace

void RegisterUrl(Arguments app, Run& run) {
  const auto options = std::make_shared<UrlOptions>();
  Arguments sub = app.Command("url", "Say where a running step, or the site, can be watched");
  sub.Option("JOB[.STEP]", options->id, "As in 123, 123.0 or 123.batch");
  sub.Flag("--site", options->site, "The page of this host's sonde serve --site, with your token");
  sub.Flag("--token", options->token, "With --site: the token alone, for programs");
  Argument socket = sub.Option("--socket", options->socket, "With --site: where it listens");
  socket.Type("PATH").ShowDefault();
  sub.OnRead([options, socket, &run] {
    options->socket_given = socket.given();
    run = [options](const Environment& env) { return Url(*options, env); };
  });
}

}  // namespace sonde::cli
