// What an application's process and the daemon of its node agree on: the memory they share and the
// two packets they exchange.
//
// The process makes a memfd of kSegmentSize bytes, seals it against any change of size, so that
// nobody can pull pages from under the daemon, and sends it with a Hello on the SOCK_SEQPACKET
// socket whose abstract name is in SONDE_SOCKET. The process writes, the daemon reads through a
// read-only mapping; neither ever waits for the other.
//
// The segment is large in address space and small in memory: only pages in use exist, and they
// are allocated (fallocate) before they are touched, so that a lack of memory is an error code and
// never a SIGBUS. A fixed reserve was chosen over further segments because pointers into it then
// never move, growth needs no message, and a reader checks one size once.
//
//   offset    what
//   0         Header
//   4 KiB     records: one per metric, appended, never changed; Header::records_end publishes them
//   8 MiB     gauge cells, one cache line each
//   9 MiB     ring of moments, kMoments of them
//   10 MiB    owners: for every distribution the number of its histogram
//   12 MiB    ring of values of the past, kPastValues of them
//   16 MiB    shards of counters: one per thread at work, kMaxMetrics Counts each
//   80 MiB    distributions: the parts of histograms, kDistributionSize bytes each
//
// A counter's value is the sum of its slot over all shards, whole numbers and fractions together. A
// thread that ends leaves its sums in its shard, and the next thread there adds to them, so sums
// only grow. The last shard is shared by the threads that found no other free.
//
// A histogram is the sum of the distributions that it owns: one for each shard whose threads have
// observed, and one shared by the threads that found no other free. Distributions are handed out
// one after the other, never taken back and never moved, so Header::distributions publishes them;
// their contents only grow. An observation's count is written last, with release: a reader that
// sees it sees the sum, minimum and maximum that belong to it.
//
// Moments and values of the past go through rings. A writer draws a ticket, Header::moments, and
// writes the ring's entry at ticket % kMoments. It makes the entry's sequence 2 * ticket + 1,
// writes, and makes it 2 * ticket + 2. If another writer is still at work on that entry, the writer
// gives up: nobody ever waits. The reader counts by the tickets what it missed.
//
// Everything is little-endian. Any change of this is a new kVersion; the daemon refuses versions
// that it does not know. Compiled into libsonde, hence free of dependencies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/histogram_buckets.h"
#include "core/text/names.h"

namespace sonde::client {

inline constexpr uint64_t kMagic = 0x31505041'45444e53;  // "SNDEAPP1"
inline constexpr uint32_t kVersion = 2;

inline constexpr size_t kMaxMetrics = 16384;         // of one process
inline constexpr size_t kMaxAppTags = kMaxTags - 1;  // the daemon adds "task"
inline constexpr char kTaskTag[] = "task";
// A histogram is recorded as series whose names have an ending of up to 6 bytes, as "_count".
inline constexpr size_t kMaxHistogramName = kMaxNameLength - 6;

inline constexpr size_t kCellSize = 64;
inline constexpr size_t kShards = 256;
inline constexpr size_t kSharedShard = kShards - 1;

// A thread's part of one counter. Whole numbers are kept apart, so that they stay exact up to 2^64
// and cost an integer addition.
struct Count {
  uint64_t whole;
  double fraction;
};
inline constexpr size_t kShardSize = kMaxMetrics * sizeof(Count);

// A part of a histogram: struct sonde_distribution of sonde.h.
struct Distribution {
  double sum;
  double min;  // the largest double before the first value
  double max;  // the negative of that
  uint64_t reserved[5];
  uint64_t counts[histogram::kBuckets];
};
inline constexpr size_t kMaxHistograms = 512;  // of one process
// Every histogram can have its shared one when threads have taken all others.
inline constexpr size_t kOwnDistributions = 2048;
inline constexpr size_t kDistributions = kOwnDistributions + kMaxHistograms;
inline constexpr size_t kDistributionSize = 5 * 4096;
static_assert(sizeof(Distribution) <= kDistributionSize);

// A moment: what sonde_annotate and its kin tell.
inline constexpr size_t kMaxRemark = 192;  // bytes; names have kMaxNameLength
inline constexpr size_t kMaxMomentText = 2 * kMaxNameLength;
inline constexpr uint8_t kMomentRemark = 0;  // AnnotationKind of core/annotation.h
inline constexpr uint8_t kMomentPhaseBegin = 1;
inline constexpr uint8_t kMomentPhaseEnd = 2;
inline constexpr uint8_t kMomentFigure = 3;
struct Moment {
  uint64_t sequence;
  int64_t time;  // nanoseconds since 1970 UTC
  double value;  // of a figure
  uint8_t kind;
  uint8_t reserved;
  uint16_t text_size;
  uint16_t unit_size;  // of a figure; its unit follows the text
  uint16_t reserved2;
  char text[kMaxMomentText];
};
inline constexpr size_t kMoments = 1024;
static_assert(sizeof(Moment) == 32 + kMaxMomentText && kMaxRemark <= kMaxMomentText);

// A value that a gauge had at a time of the past.
struct PastValue {
  uint64_t sequence;
  int64_t time;  // nanoseconds since 1970 UTC
  double value;
  uint32_t slot;  // the gauge's
  uint32_t reserved;
};
inline constexpr size_t kPastValues = 65536;
static_assert(sizeof(PastValue) == 32);

inline constexpr size_t kRecordsOffset = 4096;
inline constexpr size_t kCellsOffset = 8u << 20;
inline constexpr size_t kMomentsOffset = 9u << 20;
inline constexpr size_t kOwnersOffset = 10u << 20;
inline constexpr size_t kPastOffset = 12u << 20;
inline constexpr size_t kShardsOffset = 16u << 20;
inline constexpr size_t kDistributionsOffset = kShardsOffset + kShards * kShardSize;
inline constexpr size_t kSegmentSize = kDistributionsOffset + kDistributions * kDistributionSize;

inline constexpr size_t kRecordsSize = kCellsOffset - kRecordsOffset;
inline constexpr size_t kOwnersSize = kDistributions * sizeof(uint16_t);
static_assert(kCellsOffset + kMaxMetrics * kCellSize <= kMomentsOffset);
static_assert(kMomentsOffset + kMoments * sizeof(Moment) <= kOwnersOffset);
static_assert(kOwnersOffset + kOwnersSize <= kPastOffset);
static_assert(kPastOffset + kPastValues * sizeof(PastValue) <= kShardsOffset);

// Fields after `reserved` change while the process runs and are read and written atomically. Memory
// beyond what they publish is a hole: reading it would allocate pages.
struct Header {
  uint64_t magic;
  uint32_t version;
  uint32_t reserved;
  alignas(64) uint64_t records_end;  // bytes of records that are complete; store-release
  uint32_t shards;                   // shards that were ever used; store-release
  uint32_t distributions;            // that were handed out; store-release
  uint32_t moments_limit;            // entries of the ring that exist; store-release
  uint32_t reserved2;
  // Slots of each shard that exist; store-release.
  alignas(64) uint32_t shard_limit[kShards];
  alignas(64) uint64_t moments;  // tickets drawn; many threads add to it
  // Of values of the past; 0 in a process that knows of none.
  alignas(64) uint64_t past;  // tickets drawn
  uint32_t past_limit;        // entries of the ring that exist; store-release
  uint32_t reserved3;
};
static_assert(sizeof(Header) <= kRecordsOffset);

// One metric. Followed by name, unit and help, then for every tag uint8 lengths of key and value
// and the two texts, then zeros up to `size`.
struct Record {
  uint32_t size;  // of the whole record, a multiple of 8
  uint8_t type;   // MetricType
  uint8_t level;
  uint8_t reduction;  // Reduction
  uint8_t tag_count;
  uint32_t slot;   // gauge: of its cell; counter: in every shard; histogram: its number
  uint32_t slots;  // 1
  uint16_t name_size;
  uint16_t unit_size;
  uint16_t help_size;
  uint16_t reserved;
  uint64_t reserved2;
};
static_assert(sizeof(Record) == 32);

inline constexpr size_t kMaxRecordSize = sizeof(Record) + 2 * kMaxNameLength + kMaxTextLength +
                                         kMaxAppTags * (2 + 2 * kMaxNameLength) + 8;

// A gauge. sonde_set() stores `value` alone. sonde_set_at() makes `sequence` odd, stores value and
// time and makes it even again, so a reader that sees the same even number twice has a pair.
struct alignas(kCellSize) Cell {
  double value;  // NaN until it is set
  int64_t time;  // 0: none
  uint32_t sequence;
  uint32_t reserved;
};
static_assert(sizeof(Cell) == kCellSize);

// From the process, with the memfd as SCM_RIGHTS; the only packet it sends.
struct Hello {
  uint64_t magic;
  uint32_t version;
  int32_t pid;         // as the process sees itself
  int32_t rank;        // -1: unknown
  int32_t local_rank;  // -1: unknown
  uint64_t segment_size;
};
static_assert(sizeof(Hello) == 32);

// The daemon's answer. The process does not wait for it: when it registers a metric, it looks
// whether the answer has come.
struct Welcome {
  uint64_t magic;
  uint32_t version;
  int32_t level;
  int64_t period;
};
static_assert(sizeof(Welcome) == 24);

}  // namespace sonde::client
