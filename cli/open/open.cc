// sonde open: shows the page of a running step in a browser.
//
// The address has a token, and arguments of programs are for all to read: the browser gets the name
// of a file that only its user may read, which leads to the address.
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cli/command.h"
#include "cli/open/way.h"
#include "core/unique_fd.h"

namespace sonde::cli {
namespace {

// The user's directory for such files, which goes when they log out; else their home.
std::string PlaceFor(const std::string& step, const Environment& env) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string place = runtime != nullptr && *runtime == '/' ? runtime : env.home;
  return fmt::format("{}/.sonde-open-{}.html", place, step);
}

Status WriteLeader(const std::string& path, const std::string& url) {
  const auto failed = [&] {
    return Status(Code::kUnavailable, fmt::format("{}: {}", path, std::strerror(errno)));
  };
  // Not through what somebody else left there.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed();
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return failed();
  const std::string page = fmt::format(
      "<!doctype html><meta charset=utf-8><title>Sonde</title>"
      "<meta http-equiv=refresh content=\"0;url={}\">\n",
      url);
  if (::write(fd.get(), page.data(), page.size()) != static_cast<ssize_t>(page.size())) {
    return failed();
  }
  return {};
}

// BROWSER is a program, or several with colons between; xdg-open asks the desktop.
Status Browse(const std::string& path) {
  const char* named = std::getenv("BROWSER");
  std::string program = named == nullptr ? "" : std::string(named);
  program = program.substr(0, program.find(':'));
  if (program.empty()) program = "xdg-open";
  std::string address = "file://" + path;
  std::vector<char*> words = {program.data(), address.data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, program.c_str(), nullptr, nullptr, words.data(), environ);
  if (error != 0) {
    return {Code::kNotFound,
            fmt::format("browser '{}' (BROWSER, or xdg-open): {}", program, std::strerror(error))};
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (status == 0) return {};
  return {Code::kUnavailable, fmt::format("browser '{}' ended with {}", program,
                                          WIFEXITED(status) ? WEXITSTATUS(status) : status)};
}

int Open(const std::string& id, const Environment& env) {
  const auto archive = OpenArchive(env, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto running = FindRunning(*archive->reader, id);
  if (!running.ok()) return Fail(running.status());
  const Here here = LookAround(env.user);
  const Endpoint& endpoint = running->endpoint;
  const Way way = WayTo(endpoint, here);
  if (!way.is_here || (!here.display && std::getenv("BROWSER") == nullptr)) {
    Note(way.is_here ? "there is no display here (DISPLAY, WAYLAND_DISPLAY) and no BROWSER"
                     : "the page is on another host");
    return Print(Told(way, endpoint));
  }
  const std::string path = PlaceFor(running->job.id.ToString(), env);
  Status opened = WriteLeader(path, way.url);
  if (opened.ok()) opened = Browse(path);
  if (opened.ok()) return 0;
  Note(opened.message());
  return Print(Told(way, endpoint));
}

}  // namespace

void RegisterOpen(Arguments app, Run& run) {
  auto id = std::make_shared<std::string>();
  Arguments sub = app.Command("open", "Show the page of a running step in a browser");
  sub.Option("JOB[.STEP]", *id, "As in 123, 123.0 or 123.batch").Required();
  sub.OnRead([id, &run] { run = [id](const Environment& env) { return Open(*id, env); }; });
}

}  // namespace sonde::cli
