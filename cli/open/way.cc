#include "cli/open/way.h"

#include <fmt/core.h>

#include <cstdlib>

#include "profiles/disk/archive_dir.h"
#include "profiles/model/text.h"
#include "serve/head_client.h"

namespace sonde::cli {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Here LookAround(const std::string& user) {
  Here here;
  here.user = user;
  here.host = HostName();
  if (!Variable("SLURM_JOB_ID").empty()) here.submit_host = Variable("SLURM_SUBMIT_HOST");
  here.over_ssh = !Variable("SSH_CONNECTION").empty();
  here.display = !Variable("DISPLAY").empty() || !Variable("WAYLAND_DISPLAY").empty();
  return here;
}

Way WayTo(const Endpoint& endpoint, const Here& here) {
  Way way;
  way.url = fmt::format("http://localhost:{}/#token={}", endpoint.port,
                        serve::PercentEncode(endpoint.token));
  way.is_here = endpoint.host == here.host;
  // The head is on srun's host: a login node, or a compute node where srun runs in a job. That one
  // is reached from the host where the job was submitted, or from this one.
  std::string jump;
  if (!here.submit_host.empty() && here.submit_host != endpoint.host) {
    jump = here.submit_host;
  } else if (!way.is_here && here.over_ssh) {
    jump = here.host;
  }
  const auto at = [&](const std::string& host) {
    return fmt::format("{}@{}", text::Printable(here.user), text::Printable(host));
  };
  way.ssh = fmt::format("ssh -NL {0}:localhost:{0} ", endpoint.port);
  if (!jump.empty()) way.ssh += fmt::format("-J {} ", at(jump));
  way.ssh += at(endpoint.host);
  return way;
}

std::string Told(const Way& way, const Endpoint& endpoint) {
  return fmt::format(
      "{}\n\nThat is {}. From another machine, first run there\n\n  {}\n\nand then open the same "
      "address. The token in it is a password: do not pass it on.\n",
      way.url, way.is_here ? "here" : "on " + text::Printable(endpoint.host), way.ssh);
}

}  // namespace sonde::cli
