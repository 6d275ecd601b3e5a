#include "daemon/collect/filesystems/nfs_mountstats.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace sonde::collect {
namespace {

constexpr double kMilli = 1e-3;
// Some kernels subtracted times the wrong way round: no such time has passed.
constexpr double kImpossible = 0x1p63;

// "device DEVICE mounted on POINT with fstype TYPE statvers=...".
bool TakeHeader(Cursor& line, NfsMount& mount) {
  if (!line.Skip("device ")) return false;
  mount.device = line.Word();
  if (!line.Skip(" mounted on ")) return false;
  mount.point = line.Word();
  if (!line.Skip(" with fstype ")) return false;
  const std::string_view type = line.Word();
  return (type == "nfs" || type == "nfs4") && line.Skip(" statvers=");
}

NfsOperation OperationOf(std::string_view name) {
  if (name == "READ" || name == "READ_PLUS") return kNfsReads;
  if (name == "WRITE") return kNfsWrites;
  if (name == "COMMIT") return kNfsCommits;
  return kNfsMetadata;
}

void Add(double& sum, double value, bool first) { sum = first ? value : sum + value; }

double Seconds(Cursor& line) {
  const double milliseconds = line.Number();
  return milliseconds < kImpossible ? milliseconds * kMilli : kMissing;
}

// "READ: calls sent timeouts bytes_sent bytes_received queue rtt execute [errors]", times in ms.
void AddCalls(Cursor line, NfsCalls& calls, bool first) {
  Add(calls.calls, line.Number(), first);
  Add(calls.sent, line.Number(), first);
  Add(calls.timeouts, line.Number(), first);
  Add(calls.bytes_sent, line.Number(), first);
  Add(calls.bytes_received, line.Number(), first);
  Add(calls.queue_seconds, Seconds(line), first);
  Add(calls.answer_seconds, Seconds(line), first);
  Add(calls.total_seconds, Seconds(line), first);
}

// Up to the next mount, whichever that is.
void TakeBody(Cursor& at, NfsMount& mount) {
  bool per_operation = false;
  bool seen[kNfsOperations] = {};
  while (!at.AtEnd() && !at.Rest().starts_with("device ")) {
    const bool whole = at.Rest().find('\n') != std::string_view::npos;
    Cursor line(at.Line());
    if (!whole) break;  // cut short, and so may be its last number
    const std::string_view key = line.Word();
    if (key == "bytes:") {
      for (double& number : mount.bytes) number = line.Number();
    } else if (key == "per-op") {
      per_operation = true;
    } else if (per_operation && key.size() > 1 && key.ends_with(':')) {
      const NfsOperation operation = OperationOf(key.substr(0, key.size() - 1));
      AddCalls(line, mount.calls[operation], !seen[operation]);
      seen[operation] = true;
    }
  }
}

}  // namespace

bool TakeNfsMount(Cursor& at, NfsMount& mount) {
  while (!at.AtEnd()) {
    Cursor line(at.Line());
    if (!TakeHeader(line, mount)) continue;
    std::fill(std::begin(mount.bytes), std::end(mount.bytes), kMissing);
    std::fill(std::begin(mount.calls), std::end(mount.calls), NfsCalls());
    TakeBody(at, mount);
    return true;
  }
  return false;
}

}  // namespace sonde::collect
