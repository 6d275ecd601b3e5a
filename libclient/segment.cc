#include "libclient/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace sonde::client {
namespace {

// Some sites allow only memory that cannot be executed; kernels before 6.3 do not know the flag.
int MakeMemfd() {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create("sonde", flags | MFD_NOEXEC_SEAL);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create("sonde", flags);
}

// Growing a file beyond this limit would raise SIGXFSZ in the application.
bool FileSizeAllowed() {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kSegmentSize) {
    errno = EFBIG;
    return false;
  }
  return true;
}

// Mapped without access first: in a process that called mlockall(MCL_FUTURE) a writable mapping
// would be filled with memory at once.
char* Map(int fd) {
  void* base = mmap(nullptr, kSegmentSize, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) return nullptr;
  munlock(base, kSegmentSize);
  madvise(base, kSegmentSize, MADV_DONTDUMP);
  if (mprotect(base, kSegmentSize, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(base, kSegmentSize);
    errno = error;
    return nullptr;
  }
  return static_cast<char*>(base);
}

}  // namespace

// Opens and sizes fd_.
bool Segment::Open() {
  if (!FileSizeAllowed()) return false;
  fd_ = MakeMemfd();
  if (fd_ < 0) return false;
  struct stat info;
  records_ = cells_ = moments_ = past_ = owners_ = 0;
  if (ftruncate(fd_, static_cast<off_t>(kSegmentSize)) == 0 &&
      fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
      fstat(fd_, &info) == 0 && fallocate(fd_, 0, 0, kRecordsOffset) == 0) {
    inode_ = info.st_ino;
    return true;
  }
  const int error = errno;
  close(fd_);
  fd_ = -1;
  errno = error;
  return false;
}

bool Segment::Create() {
  if (!Open()) return false;
  base_ = Map(fd_);
  if (base_ == nullptr) {
    const int error = errno;
    close(fd_);
    fd_ = -1;
    errno = error;
    return false;
  }
  header()->magic = kMagic;
  header()->version = kVersion;
  return true;
}

void Segment::Destroy() {
  munmap(base_, kSegmentSize);
  close(fd_);
  *this = Segment();
}

void Segment::Detach() {
  // A private view of the same pages keeps the records for Renew(). Where the application has
  // closed our descriptor, empty memory takes their place: updates must still find some.
  const int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
  const int access = PROT_READ | PROT_WRITE;
  if (OwnsFd()) {
    if (mmap(base_, kSegmentSize, access, flags, fd_, 0) != MAP_FAILED) return;
    close(fd_);
  }
  fd_ = -1;
  // If this fails too, there is nothing else to try.
  [[maybe_unused]] void* const mapped =
      mmap(base_, kSegmentSize, access, flags | MAP_ANONYMOUS, -1, 0);
}

bool Segment::Renew(size_t records, size_t gauges) {
  if (fd_ < 0) {
    errno = EBADF;
    return false;
  }
  Segment fresh;
  if (!fresh.Create()) return false;
  bool good = fresh.ReserveRecords(records) && fresh.ReserveCells(gauges * kCellSize);
  if (good) {
    memcpy(fresh.records(), this->records(), records);
    fresh.header()->records_end = records;
    for (size_t i = 0; i < gauges; ++i) fresh.cell(i)->value = __builtin_nan("");
    // In one step for the other threads, which may be setting gauges.
    good = mremap(fresh.base_, kSegmentSize, kSegmentSize, MREMAP_MAYMOVE | MREMAP_FIXED, base_) !=
           MAP_FAILED;
  }
  if (!good) {
    const int error = errno;
    munmap(fresh.base_, kSegmentSize);
    close(fresh.fd_);
    errno = error;
    return false;
  }
  if (OwnsFd()) close(fd_);
  fresh.base_ = base_;
  *this = fresh;
  return true;
}

bool Segment::ReserveShard(size_t shard, size_t from, size_t to) {
  return Allocate(kShardsOffset + shard * kShardSize + from * sizeof(Count),
                  (to - from) * sizeof(Count));
}

bool Segment::ReserveDistribution(size_t index) {
  return Allocate(kDistributionsOffset + index * kDistributionSize, kDistributionSize);
}

// `have` bytes from `offset` exist; makes it at least `end`, in steps.
bool Segment::Reserve(size_t offset, size_t& have, size_t end, size_t limit) {
  if (end <= have) return true;
  const size_t want =
      (end + kStep - 1) / kStep * kStep < limit ? (end + kStep - 1) / kStep * kStep : limit;
  if (end > limit) {
    errno = ENOSPC;
    return false;
  }
  if (!Allocate(offset + have, want - have)) return false;
  have = want;
  return true;
}

bool Segment::Allocate(size_t offset, size_t size) {
  if (!OwnsFd()) {
    errno = EBADF;
    return false;
  }
  return fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(size)) == 0;
}

bool Segment::OwnsFd() const {
  struct stat info;
  return fd_ >= 0 && fstat(fd_, &info) == 0 && info.st_ino == inode_ &&
         fcntl(fd_, F_GET_SEALS) >= 0;
}

}  // namespace sonde::client
