#include "libclient/mpi/site.h"

#include "libclient/mpi/real.h"

namespace sonde::mpi {

__thread Thread thread __attribute__((tls_model("initial-exec"))) = {};
constinit bool active = false;
constinit interpose::TickClock clock;
constinit uint64_t begun = 0;

namespace {

using interpose::Add;
using interpose::AddSeconds;
using interpose::Visit;

// Share of the time since MPI_Init that the thread that called MPI_Init has spent in MPI.
struct Share {
  static constexpr double kUpdateSeconds = 0.02;

  sonde_metric_t* metric = nullptr;
  uint64_t updated = 0;
  double inside = 0;

  void Set(uint64_t now) {
    const double all = clock.Seconds(now - begun);
    updated = now;
    if (all > 0) sonde_set(metric, inside < all ? inside / all : 1);
  }
};
constinit Share share;
constinit bool by_function = false;

const char* ClassName(Class kind) {
  switch (kind) {
    case Class::P2p:
    case Class::Receive:
      return "p2p";
    case Class::Wait:
    case Class::Test:
      return "wait";
    case Class::Collective:
    case Class::Barrier:
      return "collective";
    case Class::OneSided:
      return "one_sided";
    case Class::Io:
      return "io";
    case Class::Other:
      break;
  }
  return "other";
}

bool Waits(Class kind) {
  return kind == Class::Receive || kind == Class::Wait || kind == Class::Barrier;
}

__attribute__((constructor)) void StartClock() { clock.Start(); }

}  // namespace

void* FindReal(Site& site, const char* symbol) {
  void* real = FindNext(symbol);
  __atomic_store_n(&site.real, real, __ATOMIC_RELEASE);
  return real;
}

// Two threads may do this at once: both get the same metrics.
void Prepare(Site& site) {
  if (__atomic_load_n(&site.ready, __ATOMIC_ACQUIRE)) return;
  const Visit visit;
  if (!visit.good()) return;
  const sonde_tag_t tags[] = {{"class", ClassName(site.kind)}, {"function", site.name}};
  const size_t count = by_function ? 2 : 1;
  const bool io = site.kind == Class::Io;
  site.calls = interpose::Counter(interpose::kMpiCalls, tags, count);
  site.seconds = interpose::Counter(interpose::kMpiSeconds, tags, count);
  if (Waits(site.kind)) {
    site.wait_seconds = interpose::Counter(interpose::kMpiWaitSeconds, tags, count);
  }
  if (site.sends) {
    site.sent = interpose::Counter(io ? interpose::kMpiIoWrittenBytes : interpose::kMpiSentBytes,
                                   tags, count);
    // By class alone.
    site.sizes = interpose::Histogram(
        io ? interpose::kMpiIoWriteBytes : interpose::kMpiMessageBytes, tags, 1);
  }
  if (site.receives) {
    site.received = interpose::Counter(
        io ? interpose::kMpiIoReadBytes : interpose::kMpiReceivedBytes, tags, count);
  }
  __atomic_store_n(&site.ready, true, __ATOMIC_RELEASE);
}

double Record(Site& site, uint64_t ticks, uint64_t now, const Bytes& bytes) {
  if (!__atomic_load_n(&site.ready, __ATOMIC_ACQUIRE)) Prepare(site);
  ++thread.recorded;
  const double seconds = clock.Seconds(ticks);
  Add(site.calls, 1);
  AddSeconds(site.seconds, seconds);
  AddSeconds(site.wait_seconds, seconds);
  if (bytes.sent > 0) {
    Add(site.sent, static_cast<uint64_t>(bytes.sent));
    interpose::Observe(site.sizes, static_cast<double>(bytes.sent));
  }
  if (bytes.received > 0) Add(site.received, static_cast<uint64_t>(bytes.received));
  if (!thread.main) return seconds;
  share.inside += seconds;
  if (clock.Seconds(now - share.updated) >= Share::kUpdateSeconds) share.Set(now);
  return seconds;
}

void Begin() {
  if (active || !interpose::Wanted("libsonde-mpi.so")) return;
  {
    const Visit visit;
    if (sonde_init() != SONDE_OK) return;
    by_function = interpose::StepLevel() >= 4;
    share.metric = sonde_gauge(interpose::kMpiTimeRatio.name, interpose::kMpiTimeRatio.unit,
                               interpose::kMpiTimeRatio.help, 0, nullptr, 0);
  }
  FindQuestions();
  thread.main = true;
  begun = share.updated = clock.Now();
  __atomic_store_n(&active, true, __ATOMIC_RELEASE);
}

void End() {
  if (thread.main) share.Set(clock.Now());
  __atomic_store_n(&active, false, __ATOMIC_RELEASE);
}

}  // namespace sonde::mpi
