// What the links cost: round trip, CPU per message, and what the fabric adds to a process.
//
// Two processes over loopback; the parent measures itself. usage: bench_links [ROUNDS]
// `fabric` has connected endpoints; `rdm` reliable datagrams of a provider with a descriptor to
// wait on; `polled_rdm` those of one without, in effect, which libfabric 1.17 calls net.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/link/libfabric/fabric.h"
#include "daemon/link/listener.h"
#include "daemon/link/socket_link.h"
#include "daemon/loop.h"

namespace sonde::tree {
namespace {

constexpr int kLinks = 16;
constexpr uint8_t kEcho = 1;     // comes back
constexpr uint8_t kSwallow = 2;  // does not
constexpr int kWindow = 32;

void Die(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench_links: %.*s\n", static_cast<int>(status.message().size()),
               status.message().data());
  std::exit(1);
}

Nanos CpuTime() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto nanos = [](const timeval& t) { return t.tv_sec * kSecond + t.tv_usec * 1000; };
  return nanos(use.ru_utime) + nanos(use.ru_stime);
}

// The memory that is this process's own. Not "Private", which leaves out what a fork shares.
double AnonymousKib() {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/smaps_rollup", "r"), fclose);
  char line[256];
  double kib = 0;
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::sscanf(line, "Anonymous: %lf", &kib) == 1) break;
  }
  return kib;
}

FabricOptions OptionsOf(const std::string& carrier) {
  FabricOptions options{.provider = "tcp", .local_address = "127.0.0.1"};
  if (carrier == "rdm") options.provider = "tcp;ofi_rxm";
  if (carrier == "polled_rdm") options.provider = "net,tcp";
  if (carrier != "fabric") options.endpoints = {Endpoint::kRdm};
  return options;
}

std::unique_ptr<Fabric> OpenFabric(Loop& loop, const FabricOptions& options) {
  std::unique_ptr<Fabric> fabric;
  auto call = Fabric::Open(loop, options, [&](Result<std::unique_ptr<Fabric>> opened) {
    Die(opened.status());
    fabric = *std::move(opened);
    loop.Stop();
  });
  Die(call.status());
  loop.Run();
  return fabric;
}

// The child: connects kLinks links and sends back what it is asked to, until they close.
[[noreturn]] void Peer(int pipe_fd, const std::string& carrier) {
  const bool over_fabric = carrier != "socket";
  char address[256];
  const ssize_t n = read(pipe_fd, address, sizeof address);
  if (n <= 0) _exit(1);
  const std::string to(address, static_cast<size_t>(n));
  Loop loop;
  std::unique_ptr<Fabric> fabric = over_fabric ? OpenFabric(loop, OptionsOf(carrier)) : nullptr;
  std::vector<std::unique_ptr<Link>> links;
  for (int i = 0; i < kLinks; ++i) {
    if (over_fabric) {
      auto link = fabric->Connect(to);
      Die(link.status());
      links.push_back(*std::move(link));
    } else {
      auto link = SocketLink::Connect(loop, "127.0.0.1", static_cast<uint16_t>(std::stoi(to)));
      Die(link.status());
      links.push_back(*std::move(link));
    }
    Link* self = links.back().get();
    self->SetMaxMessage(kMaxMessage);
    self->SetHandler({[self](uint8_t type, std::string_view payload) {
                        if (type == kEcho) Die(self->Send(kEcho, payload));
                      },
                      [&loop](const Status&) { loop.Stop(); }});
    Die(self->Send(kEcho, std::string(4096, 'h')));
  }
  loop.Run();
  _exit(0);
}

class Bench {
 public:
  Bench(std::string carrier, int rounds) : carrier_(std::move(carrier)), rounds_(rounds) {}

  void Run() {
    int fds[2];
    if (pipe(fds) != 0) Die(SystemError("pipe"));
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      close(fds[1]);
      Peer(fds[0], carrier_);
    }
    close(fds[0]);
    const std::string address = Open();
    const double before = AnonymousKib();
    if (write(fds[1], address.data(), address.size()) < 0) Die(SystemError("write"));
    close(fds[1]);
    loop_.Run();  // until all links have said hello
    Figure("memory_per_link", (AnonymousKib() - before) / kLinks, "KiB");
    Idle();
    RoundTrip();
    Stream();
    links_.clear();
    waitpid(child, nullptr, 0);
  }

 private:
  void Figure(const char* name, double value, const char* unit) {
    std::printf("figure links.%s_%s %.4g %s\n", carrier_.c_str(), name, value, unit);
  }

  std::string Open() {
    const auto accepted = [this](std::unique_ptr<Link> link) { Accept(std::move(link)); };
    if (carrier_ == "socket") {
      auto listener = Listener::Open(loop_, "127.0.0.1", {0, 0}, accepted);
      Die(listener.status());
      listener_ = *std::move(listener);
      return std::to_string(listener_->port());
    }
    const double memory = AnonymousKib();
    const Nanos cpu = CpuTime();
    const Nanos start = Clock::System().Monotonic();
    fabric_ = OpenFabric(loop_, OptionsOf(carrier_));
    const Nanos wall = Clock::System().Monotonic() - start;
    Figure("open_cpu", static_cast<double>(CpuTime() - cpu) / kMillisecond, "ms");
    Figure("open_wall", static_cast<double>(wall) / kMillisecond, "ms");
    auto address = fabric_->Listen(accepted);
    Die(address.status());
    Figure("memory", AnonymousKib() - memory, "KiB");
    return *address;
  }

  void Accept(std::unique_ptr<Link> link) {
    link->SetMaxMessage(kMaxMessage);
    link->SetHandler({[this](uint8_t, std::string_view) {
                        if (++hellos_ == kLinks) loop_.Stop();
                      },
                      {}});
    links_.push_back(std::move(link));
  }

  void OnAnswer(std::function<void()> answer) {
    links_[0]->SetHandler(
        {[answer = std::move(answer)](uint8_t, std::string_view) { answer(); }, {}});
  }

  // The first second is for what there may be to settle.
  void Idle() {
    constexpr Nanos kTime = 4 * kSecond;
    loop_.After(kSecond, [this] { loop_.Stop(); });
    loop_.Run();
    const Nanos cpu = CpuTime();
    const uint64_t wakeups = loop_.wakeups();
    loop_.After(kTime, [this] { loop_.Stop(); });
    loop_.Run();
    Figure("idle_cpu", 100.0 * static_cast<double>(CpuTime() - cpu) / kTime, "%");
    Figure("idle_wakeups", static_cast<double>(loop_.wakeups() - wakeups) * kSecond / kTime, "1/s");
  }

  void RoundTrip() {
    const std::string text(64, 'x');
    int left = rounds_;
    OnAnswer([&] {
      if (--left == 0) return loop_.Stop();
      Die(links_[0]->Send(kEcho, text));
    });
    const Nanos start = Clock::System().Monotonic();
    Die(links_[0]->Send(kEcho, text));
    loop_.Run();
    const Nanos wall = Clock::System().Monotonic() - start;
    Figure("roundtrip", static_cast<double>(wall) / rounds_ / kMicrosecond, "us");
  }

  // Messages of 4 KiB in windows; the last of each is echoed.
  void Stream() {
    const std::string text(4096, 'x');
    int left = rounds_ / kWindow;
    const auto send_window = [&] {
      for (int i = 1; i < kWindow; ++i) Die(links_[0]->Send(kSwallow, text));
      Die(links_[0]->Send(kEcho, "next"));
    };
    OnAnswer([&] {
      if (--left == 0) return loop_.Stop();
      send_window();
    });
    const double count = left * kWindow;
    const Nanos cpu = CpuTime();
    send_window();
    loop_.Run();
    Figure("cpu_per_4k_message", static_cast<double>(CpuTime() - cpu) / count / kMicrosecond, "us");
  }

  const std::string carrier_;
  const int rounds_;
  Loop loop_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<std::unique_ptr<Link>> links_;
  int hellos_ = 0;
};

}  // namespace
}  // namespace sonde::tree

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20'000;
  // The queues of ofi_rxm are for thousands of peers unless told otherwise.
  setenv("FI_OFI_RXM_MSG_RX_SIZE", "16", 0);
  setenv("FI_OFI_RXM_MSG_TX_SIZE", "16", 0);
  // Each with a process of its own: what libfabric needs is counted for each.
  for (const char* carrier : {"socket", "fabric", "rdm", "polled_rdm"}) {
    const bool polled = std::string_view(carrier) == "polled_rdm";
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      sonde::tree::Bench(carrier, polled ? rounds / 20 : rounds).Run();
      std::fflush(stdout);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  return 0;
}
