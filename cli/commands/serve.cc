// sonde serve: the archive in a browser and for Grafana, until it is interrupted.
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <utility>

#include "cli/command.h"
#include "cli/peaks/find.h"
#include "cli/step/step_hints.h"
#include "core/config.h"
#include "profiles/archive/keeper.h"
#include "profiles/upkeep/retention.h"
#include "serve/archive_source.h"
#include "serve/site/serve_site.h"
#include "serve/site/user_process.h"
#include "web/opentsdb/put_store.h"
#include "web/server/server.h"

namespace sonde::cli {
namespace {

constexpr size_t kMinTokenLength = 16;
constexpr size_t kMaxTokenLength = 256;

struct ServeOptions {
  uint16_t port = 0;  // any free one
  bool port_given = false;
  std::string listen = "127.0.0.1";
  bool listen_given = false;
  std::string token_file;
  std::string token;
  bool ephemeral = false;
  bool site = false;
  bool nan_null = false;
};

Status CheckToken(std::string_view what, const std::string& token, size_t least) {
  const bool plain = token.find_first_not_of(
                         "0123456789abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ-._~") == std::string::npos;
  if (token.size() >= least && token.size() <= kMaxTokenLength && plain) return {};
  return {Code::kInvalid,
          fmt::format("{} must be {} to {} letters, digits or -._~", what, least, kMaxTokenLength)};
}

// The first line of a file that only its user may read.
Result<std::string> ReadToken(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemError("open token file " + path);
  struct stat info {};
  char text[kMaxTokenLength + 2];
  const bool known = fstat(fd, &info) == 0;
  const ssize_t n = read(fd, text, sizeof(text));
  close(fd);
  if (!known || n < 0) return SystemError("read token file " + path);
  if ((info.st_mode & 077) != 0) {
    return Status(Code::kPermission,
                  fmt::format("token file {} can be read by others; chmod 600 {}", path, path));
  }
  std::string token(text, static_cast<size_t>(n));
  token.resize(std::min(token.find('\n'), token.size()));
  SONDE_RETURN_IF_ERROR(
      CheckToken(fmt::format("token file {}: its first line", path), token, kMinTokenLength));
  return token;
}

// A token on a command line can be read by every user of the machine: good enough for a store that
// was empty when it began.
Result<std::string> ChooseToken(const ServeOptions& options) {
  if (!options.token_file.empty()) return ReadToken(options.token_file);
  if (options.token.empty()) return site::RandomToken();
  if (!options.ephemeral) {
    return Status(Code::kInvalid,
                  "--token is for --ephemeral alone, for others can read it; use --token-file");
  }
  SONDE_RETURN_IF_ERROR(CheckToken("--token", options.token, 1));
  return options.token;
}

// "127.0.0.1:4242" and "[::1]:4242" include the port.
Status SplitListen(ServeOptions& options) {
  std::string& listen = options.listen;
  const size_t colon = listen.rfind(':');
  const bool bracket = listen.starts_with('[') && colon != 0 && listen[colon - 1] == ']';
  const bool one = colon != std::string::npos && listen.find(':') == colon;
  if (!one && !bracket) return {};
  const char* end = listen.data() + listen.size();
  const auto [read, error] = std::from_chars(listen.data() + colon + 1, end, options.port);
  if (error != std::errc() || read != end) {
    return {Code::kInvalid,
            fmt::format("--listen {}: expected an address, or ADDRESS:PORT", listen)};
  }
  options.port_given = true;
  listen = bracket ? listen.substr(1, colon - 2) : listen.substr(0, colon);
  return {};
}

// Ingests steps that finish while the server runs.
Result<std::unique_ptr<ArchiveKeeper>> Keep(const Environment& env, OpenedArchive archive) {
  // The limits are for the archive of the configuration, not for other archives.
  const auto config = env.archive.empty() ? LoadConfig(env.config_path) : Config();
  if (!config.ok()) return config.status();
  return std::make_unique<ArchiveKeeper>(std::move(archive), RetentionOf(*config));
}

Result<std::shared_ptr<const web::DataSource>> OpenSource(const Environment& env,
                                                          const ServeOptions& options,
                                                          const Config& config) {
  if (options.ephemeral) return {std::make_shared<web::PutStore>()};
  auto archive = OpenArchive(env, ArchiveUse::kWriting);
  if (!archive.ok()) return archive.status();
  const std::shared_ptr<const Archive> reader = archive->reader;
  auto keeper = Keep(env, *std::move(archive));
  if (!keeper.ok()) return keeper.status();
  const auto peaks = peaks::FilesOf(env);
  if (!peaks.ok()) return peaks.status();
  serve::ConcludeOptions conclude;
  conclude.hint_rules = SiteHintRules(env);
  conclude.peak_files = peaks->All();
  conclude.carbon = {config.carbon_g_per_kwh, config.pue};
  return {std::make_shared<serve::ArchiveSource>(reader, *std::move(keeper),
                                                 serve::RunningHeads::kTimeout, conclude)};
}

std::string Address(const ServeOptions& options, uint16_t port) {
  const bool v6 = options.listen.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(v6 ? "[{}]:{}" : "{}:{}"), options.listen, port);
}

void PrintWhere(const Environment& env, const ServeOptions& options, uint16_t port,
                const std::string& token) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const std::string address = Address(options, port);
  std::string text = fmt::format("Open http://{}/#token={}\n", address, token);
  text += fmt::format("From another machine, first: ssh -L {}:{} {}@{}\n", port, address, env.user,
                      host);
  text += "Grafana: an OpenTSDB data source with the header 'Authorization: Bearer TOKEN'.\n";
  text += "Ctrl-C ends it.\n";
  Print(text);
}

// The environment of root must not count for all users.
Result<Config> SiteConfig(const std::string& path) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr;) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    if (name.starts_with("SONDE_") && unsetenv(name.c_str()) == 0) {
      entry = environ;
    } else {
      ++entry;
    }
  }
  return LoadConfig(path);
}

int ServeSite(const Environment& env, const ServeOptions& options) {
  if (options.ephemeral || !options.token.empty() || !options.token_file.empty() ||
      options.port_given || !env.archive.empty()) {
    Note(
        "--site goes with --listen alone: each user has a token of their own (sonde url --site), "
        "and where archives are says sonde.conf");
    return kUsage;
  }
  Result<Config> config = SiteConfig(env.config_path);
  if (!config.ok()) return Fail(config.status());
  const Status ended = site::ServeSite(
      *std::move(config), options.listen_given ? options.listen : site::kDefaultListen);
  return ended.ok() ? kDone : Fail(ended);
}

int Serve(const Environment& env, ServeOptions options) {
  // Before any thread starts, so that only sigwait receives the signals.
  sigset_t stop;
  sigemptyset(&stop);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stop, signal);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  if (const Status split = SplitListen(options); !split.ok()) return Fail(split);
  const Result<std::string> token = ChooseToken(options);
  if (!token.ok()) return Fail(token.status());
  const Result<Config> config = LoadConfig(env.config_path);
  if (!config.ok()) return Fail(config.status());
  web::Server::Options server_options;
  server_options.address = options.listen;
  server_options.port = options.port;
  server_options.port_if_taken_any = false;
  server_options.token = *token;
  server_options.nan_null = options.nan_null || config->opentsdb_nan_null;
  server_options.cors = config->http_cors;
  Result<std::shared_ptr<const web::DataSource>> source = OpenSource(env, options, *config);
  if (!source.ok()) return Fail(source.status());
  const Result<std::unique_ptr<web::Server>> server =
      web::Server::Start(server_options, *std::move(source));
  if (!server.ok()) return Fail(server.status());
  PrintWhere(env, options, (*server)->port(), *token);
  int signal = 0;
  sigwait(&stop, &signal);
  return kDone;
}

}  // namespace

void RegisterServe(Arguments app, Run& run) {
  Arguments serve = app.Command("serve", "Show the archive in a browser and to Grafana");
  const auto options = std::make_shared<ServeOptions>();
  Argument port = serve.Option("--port", options->port, "Port; without it any free one");
  Argument listen = serve.Option("--listen", options->listen,
                                 "Numeric address to listen on, or ADDRESS:PORT; with "
                                 "--site also unix:/PATH");
  listen.ShowDefault();
  serve.Option("--token-file", options->token_file,
               "File (mode 0600) with the token, instead of a random one");
  serve.Flag("--ephemeral", options->ephemeral,
             "An empty store in memory that takes points, instead of the archive");
  serve.Option("--token", options->token, "Token, for --ephemeral only");
  serve.Flag("--nan-null", options->nan_null,
             "OpenTSDB's answers have null for NaN and infinity, not texts");
  serve.Flag("--site", options->site,
             "The archives of all users, each for its owner and for administrators; as root");
  serve.OnRead([options, port, listen, &run] {
    options->port_given = port.given();
    options->listen_given = listen.given();
    run = [options](const Environment& env) {
      return options->site ? ServeSite(env, *options) : Serve(env, *options);
    };
  });
}

}  // namespace sonde::cli
