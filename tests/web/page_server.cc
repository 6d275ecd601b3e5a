// The web server over the tests' data source, for the browser test and for working on the page.
// Prints its address with the token and ends when its standard input does. Each 't' there is a tick
// of the running step, 'e' its end. --crowded: a step with very many phases and remarks. --nodes N
// [RANKS]: one step of that many nodes (made_step.h), with so many ranks each, instead. --tree N: a
// running step whose daemons form a tree (made_tree.h): each 't' loses one more node. --head: as
// the head of the running step, which has no other.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "tests/unit/web_fake_source.h"
#include "tests/web/made_step.h"
#include "tests/web/made_tree.h"
#include "web/server/server.h"

namespace {

using namespace sonde;

class HeadSource final : public web::FakeSource {
 public:
  HeadSource() : FakeSource(Clock::System().Now()) {}
  bool HasOneStep() const override { return true; }
  void Jobs(size_t limit, JobsCallback callback) const override {
    FakeSource::Jobs(limit, [&](Result<std::vector<JobDescription>> jobs) {
      if (jobs.ok()) std::erase_if(*jobs, [](const JobDescription& job) { return job.end != 0; });
      callback(std::move(jobs));
    });
  }
};

}  // namespace

int main(int argc, char** argv) {
  web::Server::Options options;
  options.port = 0;
  options.token = "browser-test";
  const std::string_view what = argc > 1 ? argv[1] : "";
  const Nanos now = Clock::System().Now();
  std::shared_ptr<web::FakeSource> source = std::make_shared<HeadSource>();
  if (what != "--head") source = std::make_shared<web::FakeSource>(now, what == "--crowded");
  std::shared_ptr<const web::DataSource> served = source;
  if (what == "--nodes" && argc > 2) {
    const int ranks = argc > 3 ? std::atoi(argv[3]) : web::MadeStep::kUsualRanks;
    served = std::make_shared<web::MadeStep>(std::atoi(argv[2]), now, /*running=*/false, ranks);
  }
  std::shared_ptr<web::MadeTree> tree;
  if (what == "--tree" && argc > 2) {
    tree = std::make_shared<web::MadeTree>(static_cast<uint32_t>(std::atoi(argv[2])), now);
    served = tree;
  }
  const auto server = web::Server::Start(options, served);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", std::string(server.status().message()).c_str());
    return 1;
  }
  std::printf("http://127.0.0.1:%u/#token=%s\n", (*server)->port(), options.token.c_str());
  std::fflush(stdout);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c == 't') tree != nullptr ? tree->LoseOne() : source->Tick();
    if (c == 'e') tree != nullptr ? tree->End() : source->EndLive();
  }
  return 0;
}
