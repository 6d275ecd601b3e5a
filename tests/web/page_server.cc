// The web server over the tests' data source, for the browser test and for working on the page.
// Prints its address with the token and ends when its standard input does. Each 't' there is a tick
// of the running step, 'e' its end. --crowded: a step with very many phases and remarks.
#include <cstdio>
#include <string_view>

#include "core/time.h"
#include "tests/unit/web_fake_source.h"
#include "web/server/server.h"

int main(int argc, char** argv) {
  using namespace sonde;
  web::Server::Options options;
  options.port = 0;
  options.token = "browser-test";
  const bool crowded = argc > 1 && std::string_view(argv[1]) == "--crowded";
  const auto source = std::make_shared<web::FakeSource>(Clock::System().Now(), crowded);
  const auto server = web::Server::Start(options, source);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", std::string(server.status().message()).c_str());
    return 1;
  }
  std::printf("http://127.0.0.1:%u/?token=%s\n", (*server)->port(), options.token.c_str());
  std::fflush(stdout);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c == 't') source->Tick();
    if (c == 'e') source->EndLive();
  }
  return 0;
}
