// Records which rows of a profile were sent to a destination: a small file, forward/KEY@ID.
//
// A journal in text, one record per line; a torn last line is passed over:
//
//   sonde forward 1          the format
//   u URL                    where to, without secrets
//   m TIME NODE GROUP        taken by the receiver: the rows of that stream up to that time
//   i TIME NODE GROUP        a request with these rows is about to be sent
//   a                        the request was taken: every i since the last a is an m
//   x                        the request was not taken: every i since the last a is void
//   s                        the request is sent in parts, as it was refused as a whole
//   r N                      so many samples were refused for good
//   n N                      so many samples were taken
//   e TEXT                   the last failure
//   d                        all is sent, and the step had ended
//
// So after a kill at any point the request that was under way is known. It is sent again just as it
// was, and a receiver that has it already says so. Never to change.
//
// The sender holds a lock on forward/KEY@ID.lock; other senders get kBusy.
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
  Marks intent;        // of a request that was perhaps taken
  bool split = false;  // the request was sent in parts
  uint64_t taken = 0;
  uint64_t refused = 0;
  std::string failure;  // the last one, "" after a success
  bool done = false;
};
// kCorrupt for a text that is no record.
Result<RecordState> ParseRecord(std::string_view text);

class Record {
 public:
  // Opens or makes the record. kBusy if another process sends that profile to that destination.
  static Result<Record> Open(const std::string& archive, const std::string& key,
                             const Destination& destination, bool again = false);
  Record(Record&&) noexcept;
  Record& operator=(Record&&) = delete;
  ~Record();

  const RecordState& state() const { return state_; }
  // The time up to which a stream has been taken; INT64_MIN: nothing yet.
  Nanos Mark(const Stream& stream) const;

  // Each returns when its lines are with the operating system.
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

// The records in an archive that are not done: keys of profiles and ids of destinations.
struct PendingRecord {
  std::string key;
  std::string id;
  RecordState state;
};
std::vector<PendingRecord> ListPending(const std::string& archive);

}  // namespace sonde::forward
