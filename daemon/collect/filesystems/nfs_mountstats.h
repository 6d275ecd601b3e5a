// The part of /proc/PID/mountstats that is about NFS: what a mount has read, written and asked for
// since it was mounted (nfs_show_stats in the kernel's fs/nfs/super.c, iostats versions 1.0 and
// 1.1).
//
// Thread safety: functions without state; a mount's views lie in the text it was taken from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "daemon/collect/read/parse.h"

namespace sonde::collect {

// The line "bytes:", by its columns.
enum NfsBytes : uint8_t {
  kNfsRead,        // by programs, through the cache
  kNfsWritten,     // the same
  kNfsDirectRead,  // by programs, past the cache (O_DIRECT)
  kNfsDirectWritten,
  kNfsServerRead,  // from the server
  kNfsServerWritten,
  kNfsBytes,
};

// What calls are counted together.
enum NfsOperation : uint8_t { kNfsReads, kNfsWrites, kNfsCommits, kNfsMetadata, kNfsOperations };
inline constexpr std::string_view kNfsOperationNames[] = {"read", "write", "commit", "metadata"};

// Of one or more lines of "per-op statistics"; missing if there was no such line, or a number in
// one was none.
struct NfsCalls {
  double calls = kMissing;
  double sent = kMissing;        // as often as they were sent
  double timeouts = kMissing;    // no answer for the whole time (major timeouts)
  double bytes_sent = kMissing;  // headers included
  double bytes_received = kMissing;
  double queue_seconds = kMissing;   // before they were sent
  double answer_seconds = kMissing;  // from there to the answer
  double total_seconds = kMissing;   // all of it
};

struct NfsMount {
  std::string_view device;  // SERVER:PATH
  std::string_view point;   // escaped as in mountinfo
  double bytes[kNfsBytes];
  NfsCalls calls[kNfsOperations];
};

// Takes the next mount of NFS; false if there is none.
bool TakeNfsMount(Cursor& at, NfsMount& mount);

}  // namespace sonde::collect
