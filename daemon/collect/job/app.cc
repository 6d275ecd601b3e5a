#include "daemon/collect/job/app.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>

#include "core/log.h"

namespace sonde::collect {
namespace {

constexpr int kQueue = 4096;  // processes that may wait for a tick; the kernel may allow fewer
constexpr int kMaxComplaints = 32;
constexpr size_t kMaxPacket = 256;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

size_t TextSize(const Series& series) {
  size_t size = series.metric.name.size() + series.metric.unit.size() + series.metric.help.size();
  for (const auto& [key, value] : series.tags.pairs()) size += key.size() + value.size();
  return size;
}

// Messages may quote what a process has written.
std::string Printable(std::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (c < 0x20 || c == 0x7f) c = '?';
  }
  return printable;
}

// For one more element, so that push_back cannot fail.
template <typename T>
void MakeRoom(std::vector<T>& vector) {
  if (vector.size() == vector.capacity()) vector.reserve(2 * vector.size() + 16);
}

// Takes every descriptor that came with a packet; the first is returned, others are closed.
Fd TakeDescriptor(msghdr& message) {
  Fd first;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      Fd owned(fd);
      if (!first) first = std::move(owned);
    }
  }
  return first;
}

}  // namespace

// One metric of one process.
struct AppSource::Link {
  uint32_t column;
  uint32_t slot;
  bool counter;
  double last;  // as read; a gauge's counts when it changes
};

struct AppSource::Process {
  enum class State : uint8_t {
    kSilent,  // no hello yet
    kLive,
    kEnded,    // gone; to be read once more
    kDropped,  // not to be read any more
  };

  Fd connection;
  pid_t pid = 0;
  Nanos since = 0;
  State state = State::kSilent;
  int rank = 0;
  size_t registered = 0;
  uint32_t counters = 0;  // highest slot + 1
  std::optional<AppMapping> mapping;
  std::optional<AppSegment> segment;
  std::vector<Link> links;
};

// --- The socket ---

Result<std::unique_ptr<AppSource>> AppSource::Open(Options options) {
  std::unique_ptr<AppSource> source(new AppSource(std::move(options)));
  SONDE_RETURN_IF_ERROR(source->Listen());
  return source;
}

AppSource::AppSource(Options options) : options_(std::move(options)) {}
AppSource::~AppSource() = default;

Status AppSource::Listen() {
  if (options_.listener >= 0) {
    listener_ = Fd(options_.listener);
  } else {
    SONDE_RETURN_IF_ERROR(Bind());
  }
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (!epoll_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) {
    return SystemError("watch the socket for the application");
  }
  return {};
}

Status AppSource::Bind() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string& name = options_.socket;
  if (name.empty() || name.size() + 1 > sizeof(address.sun_path)) {
    return {Code::kInvalid, fmt::format("'{}' cannot be the name of a socket", name)};
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  listener_ = Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_) return SystemError("open a socket for the application");
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener_.get(), kQueue) != 0) {
    return SystemError(fmt::format("listen for the application at @{}", name));
  }
  return {};
}

void AppSource::Poll(Nanos now) {
  epoll_event events[64];
  int count = 0;
  do {
    count = epoll_wait(epoll_.get(), events, std::size(events), 0);
    bool more_to_accept = false;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr == nullptr) {
        more_to_accept = true;
      } else {
        Receive(*static_cast<Process*>(events[i].data.ptr));
      }
    }
    if (more_to_accept) AcceptAll(now);
  } while (count == static_cast<int>(std::size(events)));
  DropSilent(now);
  Reap(now);
}

// No more than the queue holds, so that a flood cannot keep the daemon here.
void AppSource::AcceptAll(Nanos now) {
  for (int i = 0; i < kQueue; ++i) {
    Fd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) {
      if (errno == EAGAIN) return;
      if (errno != ECONNABORTED && errno != EINTR) {
        return Refuse(std::string(SystemError("accept a process").message()));
      }
      continue;
    }
    Admit(std::move(connection), now);
  }
}

void AppSource::Admit(Fd connection, Nanos now) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.uid != options_.uid) {
    return Refuse(fmt::format("process {} belongs to user {}, the step to user {}", peer.pid,
                              peer.uid, options_.uid));
  }
  if (processes_.size() >= options_.max_processes) Reap(now);
  if (processes_.size() >= options_.max_processes) {
    return Refuse(fmt::format("process {}: {} processes of this node are attached already",
                              peer.pid, processes_.size()));
  }
  auto process = std::make_unique<Process>();
  process->pid = peer.pid;
  process->since = now;
  process->connection = std::move(connection);
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = process.get()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, process->connection.get(), &event) != 0) {
    return Refuse(std::string(SystemError("watch a process").message()));
  }
  processes_.push_back(std::move(process));
  Receive(*processes_.back());
}

void AppSource::Receive(Process& process) {
  using State = Process::State;
  while (process.state == State::kSilent || process.state == State::kLive) {
    char packet[kMaxPacket];
    iovec data = {packet, sizeof(packet)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got =
        recvmsg(process.connection.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      process.state = process.state == State::kLive ? State::kEnded : State::kDropped;
      process.connection.Close();
      return;
    }
    OnPacket(process, packet, static_cast<size_t>(got), TakeDescriptor(message));
  }
}

void AppSource::OnPacket(Process& process, const char* packet, size_t size, Fd memory) {
  if (process.state != Process::State::kSilent) {
    return Drop(process, Status(Code::kCorrupt, "a second packet"));
  }
  const Status greeted = Greet(process, std::string_view(packet, size), memory);
  if (!greeted.ok()) return Drop(process, greeted);
  process.state = Process::State::kLive;
  ++counts_.attached;
  SendWelcome(process);
}

Status AppSource::Greet(Process& process, std::string_view packet, const Fd& memory) {
  const Result<client::Hello> hello = ParseHello(packet);
  if (!hello.ok()) return hello.status();
  if (!memory) return {Code::kCorrupt, "a hello without memory"};
  Result<AppMapping> mapping = AppMapping::Make(memory.get());
  if (!mapping.ok()) return mapping.status();
  process.mapping = std::move(mapping).value();
  process.segment.emplace(process.mapping->base());
  // A program that no launcher gave a rank is the only one of its step.
  process.rank = std::max(hello->rank, 0);
  return process.segment->CheckHeader();
}

void AppSource::SendWelcome(const Process& process) {
  const client::Welcome welcome = {client::kMagic, client::kVersion, options_.level,
                                   options_.period};
  // Nobody waits for it: a process that is gone already does not need it.
  send(process.connection.get(), &welcome, sizeof(welcome), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void AppSource::Drop(Process& process, const Status& why) {
  process.state = Process::State::kDropped;
  process.connection.Close();
  process.segment.reset();
  process.mapping.reset();
  ++counts_.dropped;
  if (complaints_ >= kMaxComplaints) return;
  const bool last = ++complaints_ == kMaxComplaints;
  log::Warning("application: process {} (rank {}) is no longer read: {}{}", process.pid,
               process.rank, Printable(why.message()),
               last ? "; further such processes are not logged" : "");
}

void AppSource::Refuse(const std::string& why) {
  ++counts_.refused;
  if (!std::exchange(said_refused_, true)) {
    log::Warning("application: refused: {}; further refusals are not logged", why);
  }
}

// libsonde sends its hello at once; whoever does not only takes a place.
void AppSource::DropSilent(Nanos now) {
  for (const auto& process : processes_) {
    if (process->state == Process::State::kSilent && now - process->since > options_.hello_within) {
      process->state = Process::State::kDropped;
      process->connection.Close();
      Refuse(fmt::format("process {} attached and did not introduce itself", process->pid));
    }
  }
}

// --- The values ---

void AppSource::Sample(Nanos now) {
  try {
    Poll(now);
    for (const auto& process : processes_) ReadProcess(*process, now);
  } catch (const std::bad_alloc&) {
    LeaveOut("the daemon is out of memory");
  }
  AddUp();
}

void AppSource::ReadProcess(Process& process, Nanos now) {
  if (!process.segment.has_value()) return;
  const Status found = FindNew(process);
  ReadValues(process, now);
  if (!found.ok()) Drop(process, found);
}

Status AppSource::FindNew(Process& process) {
  const size_t room = std::min(client::kMaxMetrics - process.registered,
                               options_.max_metrics - std::min(links_, options_.max_metrics));
  found_.clear();
  const Status status = process.segment->ReadNew(room, found_);
  process.registered += found_.size();
  for (AppMetric& metric : found_) Enlist(process, std::move(metric));
  SONDE_RETURN_IF_ERROR(status);
  if (found_.size() < room || !process.segment->HasNew()) return {};
  if (process.registered == client::kMaxMetrics) {
    return {Code::kLimit, fmt::format("more than {} metrics", client::kMaxMetrics)};
  }
  LeaveOut(
      fmt::format("the processes of this node have registered {} metrics; more are not "
                  "recorded",
                  options_.max_metrics));
  return {};
}

void AppSource::Enlist(Process& process, AppMetric metric) {
  if (metric.series.metric.level > options_.level) return;
  if (metric.series.metric.type == MetricType::kHistogram) return;
  const bool counter = metric.series.metric.type == MetricType::kCounter;
  metric.series.tags.Set(client::kTaskTag, std::to_string(process.rank));
  const std::optional<uint32_t> column = Column(std::move(metric.series));
  if (!column) return;
  process.links.push_back({*column, metric.slot, counter, counter ? 0.0 : kMissing});
  if (counter) process.counters = std::max(process.counters, metric.slot + 1);
  ++links_;
}

// The column of a series, made now if there is none; nothing if it cannot have one.
std::optional<uint32_t> AppSource::Column(Series series) {
  std::string name = SeriesName(series.metric.name, series.tags);
  if (const auto found = columns_.find(name); found != columns_.end()) {
    const MetricType type = series_[found->second].metric.type;
    if (type == series.metric.type) return found->second;
    LeaveOut(fmt::format("{} is a {} of one process and a {} of another", name, ToString(type),
                         ToString(series.metric.type)));
    return {};
  }
  const size_t text = TextSize(series);
  if (series_.size() >= options_.max_metrics || text_ + text > options_.max_text) {
    LeaveOut(fmt::format("there are {} series with {} bytes of text; more are not recorded",
                         series_.size(), text_));
    return {};
  }
  const auto column = static_cast<uint32_t>(series_.size());
  const double start = series.metric.type == MetricType::kCounter ? 0.0 : kMissing;
  // Should memory run out half way, the columns still have one length.
  MakeRoom(values_);
  MakeRoom(ended_);
  MakeRoom(series_);
  columns_.emplace(std::move(name), column);
  series_.push_back(std::move(series));
  values_.push_back(start);
  ended_.push_back(0.0);
  text_ += text;
  ++generation_;
  return column;
}

void AppSource::LeaveOut(const std::string& why) {
  ++counts_.left_out;
  if (std::exchange(said_left_out_, true)) return;
  log::Warning("application: {}", why);
  notes_.push_back("application metrics are missing: " + why);
}

void AppSource::ReadValues(Process& process, Nanos now) {
  totals_.assign(process.counters, {});
  process.segment->AddCounters(totals_);
  for (Link& link : process.links) {
    if (link.counter) {
      const client::Count& total = totals_[link.slot];
      // A counter that falls, or is no number, was written by other means than libsonde's.
      const double sum = static_cast<double>(total.whole) + total.fraction;
      if (std::isfinite(sum)) link.last = std::max(link.last, sum);
      continue;
    }
    const AppGauge gauge = process.segment->ReadGauge(link.slot);
    if (gauge.time > now) continue;  // its time has not come
    if (std::bit_cast<uint64_t>(gauge.value) == std::bit_cast<uint64_t>(link.last)) continue;
    link.last = gauge.value;
    values_[link.column] = std::isfinite(gauge.value) ? gauge.value : kMissing;
  }
}

// Counters: what ended processes counted and what the others have counted so far.
void AppSource::AddUp() {
  for (size_t i = 0; i < series_.size(); ++i) {
    if (series_[i].metric.type == MetricType::kCounter) values_[i] = ended_[i];
  }
  for (const auto& process : processes_) {
    for (const Link& link : process->links) {
      if (link.counter) values_[link.column] += link.last;
    }
  }
}

// Reads the processes that have ended for the last time and lets go of them and of those that were
// dropped; what they counted stays.
void AppSource::Reap(Nanos now) {
  std::erase_if(processes_, [&](const std::unique_ptr<Process>& process) {
    if (process->state == Process::State::kEnded) ReadProcess(*process, now);
    if (process->state != Process::State::kEnded && process->state != Process::State::kDropped) {
      return false;
    }
    for (const Link& link : process->links) {
      if (link.counter) ended_[link.column] += link.last;
    }
    links_ -= process->links.size();
    return true;
  });
}

}  // namespace sonde::collect
