// What `sonde top` takes of a core for steps of 4, 1,000 and 10,000 nodes, without the terminal: a
// minute of asking a head over HTTP, taking answers and making frames of 120 x 40, at a sample a
// second. The head is made here, and its own time does not count: no machine of a developer has
// 10,000 nodes to be asked about, and it is the asking side that is measured.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/top/asker.h"
#include "cli/top/layout.h"
#include "profiles/disk/archive_dir.h"
#include "tests/unit/cli_top_step.h"
#include "tests/unit/temp_dir.h"

namespace {

using namespace sonde;
using namespace sonde::cli::top;

constexpr int kSeconds = 60;

double CpuSeconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Gives the answers that it was told, by the question's body or, if it has none, its target.
class MadeHead {
 public:
  MadeHead() : listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listening_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listening_, 64) != 0) {
      std::exit(1);
    }
    getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~MadeHead() {
    shutdown(listening_, SHUT_RDWR);
    thread_.join();
    close(listening_);
  }
  uint16_t port() const { return port_; }
  void Tell(const Ask& ask, std::string answer) {
    const std::lock_guard lock(mutex_);
    answers_[ask.body.empty() ? ask.target : ask.body] = std::move(answer);
  }
  double CpuUsed() {
    const std::lock_guard lock(mutex_);
    return used_;
  }

 private:
  void Serve() {
    for (int fd; (fd = accept(listening_, nullptr, nullptr)) >= 0; close(fd)) Answer(fd);
  }
  void Answer(int fd) {
    std::string text;
    size_t end = std::string::npos, length = 0;
    for (char part[65536]; end == std::string::npos || text.size() < end + 4 + length;) {
      const ssize_t got = read(fd, part, sizeof part);
      if (got <= 0) return;
      text.append(part, static_cast<size_t>(got));
      if (end != std::string::npos) continue;
      end = text.find("\r\n\r\n");
      const size_t field = text.find("Content-Length: ");
      if (field < end) std::from_chars(&text[field + 16], &text[text.size() - 1], length);
    }
    const size_t blank = text.find(' ') + 1;
    const std::string key =
        length > 0 ? text.substr(end + 4) : text.substr(blank, text.find(' ', blank) - blank);
    const std::lock_guard lock(mutex_);
    const std::string& body = answers_[key];
    text = fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
    for (std::string_view left = text; !left.empty();) {
      const ssize_t sent = send(fd, left.data(), left.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      left.remove_prefix(static_cast<size_t>(sent));
    }
    used_ = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
  }
  const int listening_;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::string> answers_;
  double used_ = 0;
  std::thread thread_;
};

// Each node differs a little from the others, and from one second to the next.
TopStep StepOf(size_t nodes, const int& second) {
  TopStep step(nodes);
  step.value = [&second](std::string_view metric, const std::string& host, int task) {
    auto value = TopStep::Usual(metric, task);
    if (value)
      *value *= 1 - static_cast<double>((std::hash<std::string>{}(host) + second) % 97) / 400;
    return value;
  };
  return step;
}

void Measure(size_t nodes) {
  const TempDir room;
  MadeHead head;
  ProfileEntry entry;
  entry.endpoint = {
      .host = HostName(), .address = "127.0.0.1", .port = head.port(), .token = "token"};
  Asker asker(*Archive::Open(room.path()), entry);
  int second = 0;
  const TopStep step = StepOf(nodes, second);
  Model model("4711.0", 0);
  View view;
  const Look look{120, 40, true, kTopStart, true};
  double used = 0, longest = 0;
  size_t asked = 0, bytes = 0;
  for (; second < kSeconds; ++second) {
    const Nanos now = kTopStart + (60 + second) * kSecond;
    const double before = head.CpuUsed();
    double making_answers = 0;
    const double begin = CpuSeconds();
    for (size_t open = 0, round = 0; round < 8; ++round) {
      for (const Ask& ask : model.Due(view, 0, now)) {
        const double making = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
        auto answer = step.Answer(ask, now);
        bytes += answer->size();
        head.Tell(ask, *std::move(answer));
        making_answers += CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - making;
        asker.Send(ask);
        ++asked;
        ++open;
      }
      while (open > 0) {
        pollfd wait{asker.fd(), POLLIN, 0};
        poll(&wait, 1, 10'000);
        for (const Reply& reply : asker.Take()) {
          --open;
          model.Take(reply.ask, reply.answer, now);
        }
        view.page = PageOf(model, view, look);
        ShowCursor(model, view);
        const Screen screen = Draw(model, view, look);
      }
    }
    if (!model.problem().empty()) fmt::print(stderr, "{}\n", model.problem()), std::exit(1);
    const double here = CpuSeconds() - begin - (head.CpuUsed() - before) - making_answers;
    used += here;
    longest = std::max(longest, here);
  }
  fmt::print("figure top.share_{} {:.3f} %\n", nodes, used / kSeconds * 100);
  fmt::print("figure top.longest_{} {:.2f} ms\n", nodes, longest * 1e3);
  fmt::print("figure top.questions_{} {:.1f} 1/s\n", nodes, static_cast<double>(asked) / kSeconds);
  fmt::print("figure top.bytes_{} {:.1f} KB/s\n", nodes,
             static_cast<double>(bytes) / kSeconds / 1000);
}

}  // namespace

int main() {
  for (const size_t nodes : {4, 1000, 10'000}) Measure(nodes);
}
