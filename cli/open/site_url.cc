#include "cli/open/site_url.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/unique_fd.h"
#include "profiles/model/text.h"
#include "serve/site/tokens.h"

namespace sonde::cli {
namespace {

constexpr size_t kMaxAnswer = 64u << 10;
constexpr timeval kMostSilence{10, 0};

Result<UniqueFd> ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Status(Code::kInvalid, path + ": too long for a Unix socket");
  }
  path.copy(address.sun_path, path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return SystemError("make a socket");
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    setsockopt(fd.get(), SOL_SOCKET, option, &kMostSilence, sizeof(kMostSilence));
  }
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return SystemError(fmt::format(
        "ask the site's server for your token at {} (is 'sonde serve --site' on this host, and "
        "does it listen there? --socket PATH names another socket)",
        path));
  }
  return fd;
}

Result<std::string> Get(const UniqueFd& fd) {
  constexpr std::string_view kRequest = "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n";
  if (send(fd.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kRequest.size())) {
    return SystemError("ask the site's server");
  }
  std::string answer;
  char piece[4096];
  for (ssize_t size = 0; answer.size() < kMaxAnswer;
       answer.append(piece, static_cast<size_t>(size))) {
    size = recv(fd.get(), piece, sizeof(piece), 0);
    if (size < 0) return SystemError("read the answer of the site's server");
    if (size == 0) break;
  }
  return answer;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isalnum(c) != 0; });
}

}  // namespace

Result<std::string> SiteToken(const std::string& socket) {
  const Result<UniqueFd> fd = ConnectTo(socket + site::kTokenSocket);
  if (!fd.ok()) return fd.status();
  const Result<std::string> answer = Get(*fd);
  if (!answer.ok()) return answer.status();
  const size_t head = std::min(answer->find("\r\n\r\n"), answer->size());
  std::string body = answer->substr(std::min(head + 4, answer->size()));
  while (body.ends_with('\n')) body.pop_back();
  if (answer->starts_with("HTTP/1.1 200 ") && IsToken(body)) return body;
  return Status(Code::kUnavailable,
                fmt::format("the site's server does not tell your token: {}",
                            text::Printable(body.empty() ? "it has closed the connection" : body)));
}

std::string ToldOfSite(const std::string& socket, const std::string& token, const Here& here) {
  constexpr int kPort = 4242;
  return fmt::format(
      "http://localhost:{0}/#token={1}\n\n"
      "That is this site's page. From your own machine, first run there\n\n"
      "  ssh -NL {0}:{2} {3}@{4}\n\n"
      "and then open the address. The token in it is a password: do not pass it on.\n\n"
      "Programs on this host send the token in a header:\n\n"
      "  curl --unix-socket {2} -H \"Authorization: Bearer $(sonde url --site --token)\" "
      "http://localhost/job/list\n",
      kPort, token, text::Printable(socket), text::Printable(here.user),
      text::Printable(here.host));
}

}  // namespace sonde::cli
