#include "insight/budget.h"

#include <algorithm>
#include <cmath>

#include "insight/robust.h"

namespace sonde::insight {
namespace {

constexpr size_t kMostThreads = 1024;
constexpr double kLeftOver = 0.02;  // of calls that lie before the first tick
constexpr double kMostlyMpi = 0.5;  // of a tick, to tell whether MPI polls
constexpr double kUnclear = 0.25;   // of the time in MPI may be with or without CPU time
constexpr size_t kFewestPollTicks = 3;
constexpr double kPolls = 0.1;

constexpr std::array<std::string_view, kSpentKinds> kKeys = {
    "computing", "mpi_waiting", "mpi_moving", "io", "gpu_waiting", "stolen", "idle"};
constexpr std::array<std::string_view, kSpentKinds> kNames = {
    "computing", "waiting in MPI", "moving in MPI", "I/O", "waiting for GPUs", "stolen", "idle"};

// The value at a tick, 0 where there is none.
double At(const Row& row, size_t tick) {
  return tick < row.size() && row[tick] > 0 ? row[tick] : 0;
}
bool IsKnown(const Row& row, size_t tick) { return tick < row.size() && !std::isnan(row[tick]); }

// Before its first call a process has no series, and no calls.
void BeginWithNone(Row& row) {
  const auto first = std::find_if(row.begin(), row.end(), [](double x) { return !std::isnan(x); });
  if (first != row.end()) std::fill(row.begin(), first, 0);
}

// Moves what is above `threads` at a tick to the ticks before; gives what is left at the first one.
// The rows share the room of a tick by what they have left.
double MoveBack(std::span<Row* const> rows, double threads) {
  std::vector<double> waiting(rows.size(), 0);
  double left = 0;
  for (size_t t = rows.front()->size(); t-- > 0;) {
    double all = 0;
    for (size_t i = 0; i < rows.size(); ++i) all += waiting[i] += At(*rows[i], t);
    const double fits = all > threads ? threads / all : 1;
    for (size_t i = 0; i < rows.size(); ++i) {
      const double here = waiting[i] * fits;
      waiting[i] -= here;
      if (IsKnown(*rows[i], t)) (*rows[i])[t] = here;
    }
    left = all * (1 - fits);
  }
  return left;
}

// With the least number of threads with which (nearly) all fits.
void Spread(std::span<Row* const> rows) {
  double sum = 0, most = 0;
  for (size_t t = 0; t < rows.front()->size(); ++t) {
    double all = 0;
    for (const Row* row : rows) all += At(*row, t);
    sum += all;
    most = std::max(most, all);
  }
  if (most <= 1) return;
  std::vector<Row> tried(rows.size());
  std::vector<Row*> pointers;
  pointers.reserve(rows.size());
  for (Row& row : tried) pointers.push_back(&row);
  for (size_t threads = 1; threads <= kMostThreads; ++threads) {
    for (size_t i = 0; i < rows.size(); ++i) tried[i] = *rows[i];
    const double left = MoveBack(pointers, static_cast<double>(threads));
    if (left <= std::max(1.0, kLeftOver * sum) || static_cast<double>(threads) >= most) break;
  }
  for (size_t i = 0; i < rows.size(); ++i) *rows[i] = std::move(tried[i]);
}

// What is known of a tick before the CPU time in MPI is.
struct TickParts {
  double whole = 0;
  double mpi = 0;         // without MPI-IO
  double wait = 0;        // of it, outside of collectives
  double collective = 0;  // of it
  double io = 0;
  double cpu = 0;    // outside of I/O
  double least = 0;  // CPU time in MPI
  double most = 0;
};

double IoCallsAt(const RankRates& rates, size_t t) {
  return std::max(At(rates.io, t), At(rates.mpi_io, t));
}
// Calls that were counted, or samples of blocked processes.
double IoAt(const RankRates& rates, size_t t) {
  const double calls = IoCallsAt(rates, t);
  return rates.io.empty() ? std::max(calls, std::min(1.0, At(rates.blocked, t))) : calls;
}

// Whether enough is known of a tick.
bool IsCounted(const RankRates& rates, size_t t) {
  return IsKnown(rates.user, t) && (rates.system.empty() || IsKnown(rates.system, t)) &&
         (rates.mpi.empty() || IsKnown(rates.mpi, t)) && (rates.io.empty() || IsKnown(rates.io, t));
}

TickParts TickPartsOf(const RankRates& rates, size_t t) {
  TickParts out;
  const double used = At(rates.user, t) + At(rates.system, t);
  out.whole = std::max(std::max(rates.cpus, 0.0), used);
  out.mpi = std::max(0.0, At(rates.mpi, t) - At(rates.mpi_io, t));
  out.wait = std::min(out.mpi, At(rates.wait, t));
  out.collective = std::min(out.mpi - out.wait, At(rates.collective, t));
  out.io = IoAt(rates, t);
  double calls = IoCallsAt(rates, t);  // blocked processes use no CPU time
  if (out.mpi + out.io > out.whole) {
    const double scale = out.whole / (out.mpi + out.io);
    for (double* part : {&out.mpi, &out.wait, &out.collective, &out.io, &calls}) *part *= scale;
  }
  out.cpu = std::max(0.0, used - std::min(calls, At(rates.system, t)));
  out.most = std::min(out.mpi, out.cpu);
  out.least = std::clamp(out.cpu - (out.whole - out.mpi - out.io), 0.0, out.most);
  return out;
}

double Known(double value, bool known) { return known ? value : kNoNumber; }

// What is neither computing nor in a call.
void DivideRest(const RankRates& rates, size_t t, double rest, Spending& out) {
  const auto take = [&](Spent kind, const Row& row) {
    const double part = std::min(rest, At(row, t));
    rest -= part;
    out.cpus[static_cast<size_t>(kind)] = Known(part, IsKnown(row, t));
  };
  take(Spent::kStolen, rates.stolen);
  take(Spent::kGpuWaiting, rates.gpu);
  out.cpus[static_cast<size_t>(Spent::kIdle)] = rest;
}

Spending SpendingAt(const RankRates& rates, size_t t, const CpuInMpi& in_mpi, double waiting) {
  Spending out;
  out.cpus.fill(kNoNumber);
  if (!IsCounted(rates, t)) return out;
  const TickParts parts = TickPartsOf(rates, t);
  const double inside = std::clamp(in_mpi.share * parts.mpi, parts.least, parts.most);
  const double room = std::max(0.0, parts.whole - parts.mpi - parts.io);
  const double computing = std::min(parts.cpu - inside, room);
  const double wait = std::min(parts.mpi, parts.wait + waiting * parts.collective);
  const bool mpi = !rates.mpi.empty();
  const bool io = !rates.io.empty() || !rates.mpi_io.empty() || IsKnown(rates.blocked, t);
  out.whole = parts.whole;
  out.cpus[static_cast<size_t>(Spent::kComputing)] = computing;
  out.cpus[static_cast<size_t>(Spent::kMpiWaiting)] = Known(wait, mpi);
  out.cpus[static_cast<size_t>(Spent::kMpiMoving)] = Known(parts.mpi - wait, mpi);
  out.cpus[static_cast<size_t>(Spent::kIo)] = Known(parts.io, io);
  DivideRest(rates, t, room - computing, out);
  return out;
}

// The rank's mean time in collectives of a window; NaN: nothing is known.
double CollectiveIn(const RankRates& rates, size_t window) {
  const size_t begin = window * kCollectiveWindow;
  const size_t end = std::min(begin + kCollectiveWindow, rates.mpi.size());
  double sum = 0, count = 0;
  for (size_t t = begin; t < end; ++t) {
    if (!IsKnown(rates.mpi, t)) continue;
    sum += At(rates.collective, t);
    ++count;
  }
  return count > 0 ? sum / count : kNoNumber;
}

}  // namespace

std::string_view KeyOf(Spent kind) { return kKeys[static_cast<size_t>(kind)]; }
std::string_view NameOf(Spent kind) { return kNames[static_cast<size_t>(kind)]; }

void SpreadCalls(Row& rates) {
  Row* const row = &rates;
  MoveBack({&row, 1}, 1);
}

void SpreadCalls(RankRates& rates) {
  BeginWithNone(rates.io);
  if (!rates.io.empty()) {
    Row* const io[] = {&rates.io};
    Spread(io);
  }
  if (rates.mpi.empty()) return;
  BeginWithNone(rates.mpi);
  // The parts of the time in MPI share its room: so their sum stays what it is.
  const size_t ticks = rates.mpi.size();
  Row other = rates.mpi;
  for (Row* row : {&rates.wait, &rates.collective, &rates.mpi_io}) {
    if (row->empty()) continue;
    row->resize(ticks, 0);
    for (size_t t = 0; t < ticks; ++t) {
      // What is known of all MPI is known of its parts: without calls there is no series.
      (*row)[t] =
          IsKnown(rates.mpi, t) ? std::min(At(*row, t), std::max(0.0, other[t])) : kNoNumber;
      other[t] -= (*row)[t];
    }
  }
  std::vector<Row*> parts = {&other};
  for (Row* row : {&rates.wait, &rates.collective, &rates.mpi_io}) {
    if (!row->empty()) parts.push_back(row);
  }
  Spread(parts);
  for (size_t t = 0; t < ticks; ++t) {
    if (!IsKnown(rates.mpi, t)) continue;
    rates.mpi[t] = 0;
    for (const Row* row : parts) rates.mpi[t] += At(*row, t);
  }
}

CpuInMpi FindCpuInMpi(const RankRates& rates) {
  CpuInMpi out;
  double cpu = 0, wanted = 0, mpi = 0, unclear = 0, all = 0;
  size_t ticks = 0;
  for (size_t t = 0; t < rates.mpi.size(); ++t) {
    if (!IsCounted(rates, t)) continue;
    const TickParts parts = TickPartsOf(rates, t);
    unclear += parts.most - parts.least;
    all += parts.cpu;
    if (parts.mpi < kMostlyMpi || parts.most - parts.least > kUnclear * parts.mpi) continue;
    const double inside = (parts.least + parts.most) / 2;
    ++ticks;
    mpi += parts.mpi;
    cpu += inside;
    wanted += std::min(parts.mpi, inside + At(rates.stolen, t));
  }
  out.unclear = all > 0 ? unclear / all : 0;
  if (ticks < kFewestPollTicks) return out;
  out.share = cpu / mpi;
  out.found = true;
  out.polls = wanted >= kPolls * mpi;
  return out;
}

LeastCollective::LeastCollective(size_t ticks)
    : least_((ticks + kCollectiveWindow - 1) / kCollectiveWindow,
             std::numeric_limits<double>::infinity()) {}

void LeastCollective::Add(const RankRates& rates) {
  for (size_t w = 0; w < least_.size(); ++w) {
    const double own = CollectiveIn(rates, w);
    if (!std::isnan(own)) least_[w] = std::min(least_[w], own);
  }
}

Row LeastCollective::WaitingOf(const RankRates& rates) const {
  Row out(rates.mpi.size(), 0);
  for (size_t t = 0; t < out.size(); ++t) {
    const size_t window = t / kCollectiveWindow;
    const double own = CollectiveIn(rates, window);
    if (own > 0 && window < least_.size()) out[t] = std::clamp(1 - least_[window] / own, 0.0, 1.0);
  }
  return out;
}

std::vector<Spending> SpendingOf(const RankRates& rates, const CpuInMpi& in_mpi,
                                 const Row& collective_waiting) {
  std::vector<Spending> out;
  out.reserve(rates.user.size());
  for (size_t t = 0; t < rates.user.size(); ++t) {
    out.push_back(SpendingAt(rates, t, in_mpi, At(collective_waiting, t)));
  }
  return out;
}

void Budget::Add(const Spending& tick, double seconds) {
  if (std::isnan(tick.whole)) return;
  whole_ += tick.whole * seconds;
  for (size_t k = 0; k < kSpentKinds; ++k) {
    if (std::isnan(tick.cpus[k])) continue;
    const double part = tick.cpus[k] * seconds;
    seconds_[k] = std::isnan(seconds_[k]) ? part : seconds_[k] + part;
  }
}

void Budget::Add(const Budget& other) {
  whole_ += other.whole_;
  for (size_t k = 0; k < kSpentKinds; ++k) {
    if (std::isnan(other.seconds_[k])) continue;
    seconds_[k] = std::isnan(seconds_[k]) ? other.seconds_[k] : seconds_[k] + other.seconds_[k];
  }
}

double Budget::Share(Spent kind) const { return whole_ > 0 ? Seconds(kind) / whole_ : kNoNumber; }

Efficiency EfficiencyOf(std::span<const double> computing) {
  Efficiency out;
  double sum = 0, most = 0, count = 0;
  for (const double share : computing) {
    if (std::isnan(share)) continue;
    sum += share;
    most = std::max(most, share);
    ++count;
  }
  if (!(most > 0)) return out;
  out.load_balance = sum / count / most;
  out.communication = most;
  out.parallel = sum / count;
  return out;
}

}  // namespace sonde::insight
