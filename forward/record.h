// What of a profile has been sent to a destination: a small file in the archive, forward/KEY@ID.
//
// A journal in text, one line each, of which a torn last one is passed over:
//
//   sonde forward 1          the format
//   u URL                    where to, without secrets
//   m TIME NODE GROUP        taken by the receiver: the rows of that stream up to that time
//   i TIME NODE GROUP        a request with them is about to go
//   a                        it was taken: every i since the last a is an m
//   x                        none of it was taken: every i since the last a is void
//   s                        it is sent in parts, as it was refused as a whole
//   r N                      so many samples were refused for good
//   n N                      so many samples were taken
//   e TEXT                   the last failure
//   d                        all is sent, and the step had ended
//
// So after a kill at any point the request that was on its way is known, and is sent again just as
// it was: a receiver that has it says so. Never to change.
//
// Who sends holds a lock on forward/KEY@ID.lock; others are told kBusy.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "forward/formats/destination.h"
#include "profiles/disk/file_lock.h"

namespace sonde::forward {

// A node and a group; kReducedNode: the reduced series.
using Stream = std::pair<uint32_t, std::string>;
using Marks = std::map<Stream, Nanos>;

struct RecordState {
  std::string url;
  Marks marks;
  Marks intent;        // of a request of which nobody knows whether it was taken
  bool split = false;  // it went in parts
  uint64_t taken = 0;
  uint64_t refused = 0;
  std::string failure;  // the last one, "" after a success
  bool done = false;
};
// kCorrupt for what no record can be.
Result<RecordState> ParseRecord(std::string_view text);

class Record {
 public:
  // Opens or makes it. kBusy if another process sends that profile there.
  static Result<Record> Open(const std::string& archive, const std::string& key,
                             const Destination& destination, bool again = false);
  Record(Record&&) noexcept;
  Record& operator=(Record&&) = delete;
  ~Record();

  const RecordState& state() const { return state_; }
  // Up to which time a stream has been taken; INT64_MIN: nothing yet.
  Nanos Mark(const Stream& stream) const;

  // Each is with the operating system when it returns.
  Status Begin(const Marks& marks);
  Status Split();
  Status Cancel();
  Status Taken(uint64_t samples, uint64_t refused);
  Status Failed(std::string_view why);
  Status Done();

 private:
  Record() = default;
  Status Append(const std::string& text);

  std::string path_;
  FileLock lock_;
  int fd_ = -1;
  RecordState state_;
};

// What lies in an archive that is not done: keys of profiles and ids of destinations.
struct PendingRecord {
  std::string key;
  std::string id;
  RecordState state;
};
std::vector<PendingRecord> ListPending(const std::string& archive);

}  // namespace sonde::forward
