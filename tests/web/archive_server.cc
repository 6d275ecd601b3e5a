#include "tests/web/archive_server.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "core/time.h"
#include "profiles/archive/keeper.h"
#include "profiles/archive/open_archive.h"
#include "serve/archive_source.h"
#include "web/server/server.h"

namespace sonde::web {
namespace {

constexpr Nanos kPatience = 60 * kSecond;

}  // namespace

void Fail(const Status& status) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name,
               std::string(status.message()).c_str());
  std::exit(1);
}

void ServeArchive(const std::string& root, const std::function<void(char)>& told) {
  auto archive = Need(OpenArchive(root, kPatience));
  const std::shared_ptr<const Archive> reader = archive.reader;
  Server::Options options;
  options.port = 0;
  options.token = "browser-test";
  const auto server = Need(
      Server::Start(options, std::make_shared<serve::ArchiveSource>(
                                 reader, std::make_unique<ArchiveKeeper>(std::move(archive)))));
  std::printf("http://127.0.0.1:%u/#token=%s\n", server->port(), options.token.c_str());
  std::fflush(stdout);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) told(static_cast<char>(c));
}

}  // namespace sonde::web
