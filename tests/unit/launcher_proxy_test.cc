// The socket for programs for metric-proxy, as a daemon's process makes it, and who is sent there.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/unique_fd.h"
#include "launcher/lifeline.h"
#include "launcher/process.h"
#include "launcher/process_id.h"
#include "launcher/proxy_socket.h"
#include "tests/unit/in_child.h"
#include "tests/unit/temp_dir.h"

namespace sonde::launch {
namespace {

using std::chrono::milliseconds;

sockaddr_un FileAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

UniqueFd ListenAtFile(const std::string& path) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = FileAddress(path);
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), at, sizeof(address)), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  return listener;
}

// What a program started by Start writes to its lifeline, until it ends.
std::string AllOf(launch::Lifeline& lifeline) {
  std::string all, packet;
  const launch::Deadline deadline(milliseconds(10'000));
  while (lifeline.Receive(packet, deadline) == launch::Lifeline::Event::kPacket) all += packet;
  return all;
}

launch::Process Script(const std::string& script) {
  return {"/bin/sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin"}, -1, nullptr};
}

TEST(Start, AProgramForMetricProxyCanConnectBeforeTheDaemonRuns) {
  const TempDir directory;
  launch::Process process = Script(
      "exec /usr/bin/python3 -c \"import socket\n"
      "s = socket.socket(fileno=6)\n"
      "s.setblocking(True)\n"
      "socket.socket(fileno=3).send(s.accept()[0].recv(100))\"");
  process.application = "sonde-test/" + std::to_string(::getpid());
  process.proxy = directory.path() + "/proxy";
  Result<launch::Daemon> daemon = Start(process);
  ASSERT_TRUE(daemon.ok());
  struct stat file {};
  ASSERT_EQ(::stat(process.proxy.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode, S_IFSOCK | 0700u) << "nobody else connects";
  const UniqueFd program(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = FileAddress(process.proxy);
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  ASSERT_EQ(::connect(program.get(), at, sizeof(address)), 0);
  ASSERT_EQ(::send(program.get(), "hello", 5, MSG_NOSIGNAL), 5);
  EXPECT_EQ(AllOf(daemon->lifeline), "hello");
  EXPECT_TRUE(launch::WaitForEnd(daemon->process, launch::Deadline(milliseconds(10'000))));
}

// What cannot be made is not there, and nothing else is in its place.
TEST(Start, TheDaemonStartsWithoutASocketForMetricProxy) {
  const TempDir directory;
  std::ofstream(directory.path() + "/taken") << "";
  for (const std::string& path : {std::string(), directory.path() + "/missing/proxy",
                                  directory.path() + "/taken", "/" + std::string(300, 'x')}) {
    launch::Process process = Script(
        "exec /usr/bin/python3 -c \"import os, socket\n"
        "fds = [n for n in range(64) if os.path.exists(f'/proc/self/fd/{n}')]\n"
        "socket.socket(fileno=3).send(repr(fds).encode())\"");
    process.application = "sonde-test/" + std::to_string(::getpid());
    process.proxy = path;
    Result<launch::Daemon> daemon = Start(process);
    ASSERT_TRUE(daemon.ok()) << path;
    EXPECT_EQ(AllOf(daemon->lifeline), "[0, 1, 2, 3, 5]") << path;
    EXPECT_TRUE(launch::WaitForEnd(daemon->process, launch::Deadline(milliseconds(10'000))));
  }
  EXPECT_TRUE(std::filesystem::exists(directory.path() + "/taken"));
}

TEST(Start, LeavesNoFileOfADaemonThatDidNotStart) {
  const TempDir directory;
  launch::Process process = Script("");
  process.path = "/nonexistent/sonded";
  process.proxy = directory.path() + "/proxy";
  EXPECT_FALSE(Start(process).ok());
  EXPECT_FALSE(std::filesystem::exists(process.proxy));
}

TEST(RemoveLeftFile, FollowsNoLink) {
  const TempDir directory;
  const std::string link = directory.path() + "/proxy", target = directory.path() + "/target";
  std::ofstream(target) << "";
  std::filesystem::create_symlink(target, link);
  launch::RemoveLeftFile(link, milliseconds(10'000));
  EXPECT_FALSE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::exists(target));
  launch::RemoveLeftFile(link, milliseconds(10'000));
  launch::RemoveLeftFile("", milliseconds(10'000));
}

// As a user whom nobody else is: the path at which metric-proxy listens has its number.
TEST(ProxySocket, IsForProgramsThatHaveNoOtherProxy) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TempDir directory;
  const uid_t uid = 2'000'000 + static_cast<uid_t>(::getpid());
  const std::string path = directory.path() + "/proxy";
  const std::string own = "/tmp/metric-proxy-" + std::to_string(uid) + ".socket";
  ASSERT_EQ(::chown(directory.path().c_str(), uid, uid), 0);
  const int ended = InChild([&] {
    ASSERT_EQ(::setresuid(uid, uid, uid), 0);
    EXPECT_FALSE(proxy_socket::IsFor(std::nullopt, path, uid)) << "it could not be made";
    const UniqueFd ours = ListenAtFile(path);
    EXPECT_TRUE(proxy_socket::IsFor(std::nullopt, path, uid));
    EXPECT_FALSE(proxy_socket::IsFor("/tmp/mine", path, uid));
    EXPECT_FALSE(proxy_socket::IsFor("", path, uid)) << "it is switched off";
    EXPECT_FALSE(proxy_socket::IsFor(std::nullopt, "", uid));
    EXPECT_FALSE(proxy_socket::IsFor(std::nullopt, path, uid + 1)) << "somebody else's";
    UniqueFd theirs = ListenAtFile(own);
    EXPECT_FALSE(proxy_socket::IsFor(std::nullopt, path, uid));
    theirs.Reset();
    EXPECT_TRUE(proxy_socket::IsFor(std::nullopt, path, uid)) << "metric-proxy leaves its file";
    ::unlink(own.c_str());
  });
  EXPECT_EQ(ended, 0);
  // Another user's there, whose queue is full, is no proxy of this one's: nobody may wait at it.
  const int waited = InChild([&] {
    const UniqueFd foreign = ListenAtFile(own);
    ASSERT_EQ(::listen(foreign.get(), 0), 0);
    const sockaddr_un address = FileAddress(own);
    const auto* const at = reinterpret_cast<const sockaddr*>(&address);
    std::vector<UniqueFd> waiting;
    do {
      waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    } while (::connect(waiting.back().get(), at, sizeof(address)) == 0);
    ASSERT_EQ(errno, EAGAIN);
    ASSERT_EQ(::chmod(own.c_str(), 0777), 0);
    const UniqueFd ours = ListenAtFile(path + ".2");
    ASSERT_EQ(::chown((path + ".2").c_str(), uid, uid), 0);
    ASSERT_EQ(::setresuid(uid, uid, uid), 0);
    EXPECT_TRUE(proxy_socket::IsFor(std::nullopt, path + ".2", uid));
  });
  ::unlink(own.c_str());
  EXPECT_EQ(waited, 0);
  EXPECT_TRUE(proxy_socket::IsOurs(proxy_socket::Path(uid, "7.0-1", "abc")));
  EXPECT_FALSE(proxy_socket::IsOurs("/tmp/metric-proxy-7.socket"));
  EXPECT_FALSE(proxy_socket::IsOurs(""));
}

}  // namespace
}  // namespace sonde::launch
