// sonde serve: the archive in a browser and for Grafana, until it is interrupted.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "cli/archive_source.h"
#include "cli/command.h"
#include "web/server.h"

namespace sonde::cli {
namespace {

constexpr size_t kTokenBytes = 16;
constexpr size_t kMinTokenLength = 16;
constexpr size_t kMaxTokenLength = 256;

struct ServeOptions {
  uint16_t port = 4242;
  bool port_given = false;
  std::string listen = "127.0.0.1";
  std::string token_file;
};

Result<std::string> RandomToken() {
  unsigned char bytes[kTokenBytes];
  if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
    return SystemError("make a random token");
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
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
  const bool plain = token.find_first_not_of(
                         "0123456789abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ-._~") == std::string::npos;
  if (token.size() < kMinTokenLength || token.size() > kMaxTokenLength || !plain) {
    return Status(Code::kInvalid,
                  fmt::format("token file {}: its first line must be {} to {} letters, digits or "
                              "-._~",
                              path, kMinTokenLength, kMaxTokenLength));
  }
  return token;
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
  std::string text = fmt::format("Open http://{}/?token={}\n", address, token);
  text += fmt::format("From another machine, first: ssh -L {}:{} {}@{}\n", port, address, env.user,
                      host);
  text += "Grafana: an OpenTSDB data source with the header 'Authorization: Bearer TOKEN'.\n";
  text += "Ctrl-C ends it.\n";
  Print(text);
}

int Serve(const Environment& env, const ServeOptions& options) {
  // Before any thread starts, so that only sigwait takes them.
  sigset_t stop;
  sigemptyset(&stop);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stop, signal);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  const Result<std::string> token =
      options.token_file.empty() ? RandomToken() : ReadToken(options.token_file);
  if (!token.ok()) return Fail(token.status());
  Result<std::unique_ptr<Archive>> archive = OpenArchive(env);
  if (!archive.ok()) return Fail(archive.status());

  web::Server::Options server_options;
  server_options.address = options.listen;
  server_options.port = options.port;
  server_options.port_if_taken_any = !options.port_given;
  server_options.token = *token;
  const Result<std::unique_ptr<web::Server>> server =
      web::Server::Start(server_options, std::make_shared<ArchiveSource>(*std::move(archive)));
  if (!server.ok()) return Fail(server.status());
  PrintWhere(env, options, (*server)->port(), *token);
  int signal = 0;
  sigwait(&stop, &signal);
  return kDone;
}

}  // namespace

void RegisterServe(CLI::App& app, Run& run) {
  CLI::App* serve = app.add_subcommand("serve", "Show the archive in a browser and to Grafana");
  const auto options = std::make_shared<ServeOptions>();
  CLI::Option* port = serve->add_option("--port", options->port,
                                        "Port; without it 4242, or any free one if that is taken");
  serve->add_option("--listen", options->listen, "Numeric address to listen on")
      ->capture_default_str();
  serve->add_option("--token-file", options->token_file,
                    "File (mode 0600) with the token, instead of a random one");
  serve->callback([options, port, &run] {
    options->port_given = port->count() > 0;
    run = [options](const Environment& env) { return Serve(env, *options); };
  });
}

}  // namespace sonde::cli
