// Reading the kernel's small text files over and over: a descriptor that stays open, pread from its
// beginning, one buffer for all files.
//
// The size asked for is right for the file and not larger: the kernel allocates by it for some
// files. It grows when a file fills it; from then on a read allocates nothing.
//
// Thread safety: none; one thread owns a buffer and its readers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "core/unique_fd.h"

namespace sonde::collect {

// How the kernel hands out a file's text.
enum class Shape : unsigned char {
  kWhole,    // in one read, if the buffer is large enough (single_open: stat, meminfo, PID/stat)
  kRecords,  // some lines at a time, until a read gives nothing (net/dev, diskstats)
};

// What every reader reads into; a text is valid until the next read into the same buffer.
class ReadBuffer {
 public:
  char* Reserve(size_t size) {
    if (bytes_.size() < size) bytes_.resize(size);
    return bytes_.data();
  }

 private:
  std::vector<char> bytes_;
};

// No file read here comes near it; one that does is not what it seems to be.
inline constexpr size_t kMaxFileSize = 16u << 20;

// Of a file that holds a number.
inline constexpr size_t kNumberSize = 64;

// The whole text of an open file, or -errno in `error` (0 if none) and an empty text. `size` is how
// much to ask for and grows as needed.
std::string_view ReadText(int fd, Shape shape, size_t& size, ReadBuffer& buffer, int& error);

// A file by its name. After an error it is opened again: at once, then after 1 s, 2 s, ... 64 s.
class FileReader {
 public:
  FileReader(std::string path, Shape shape, size_t size)
      : path_(std::move(path)), shape_(shape), size_(size) {}

  // The file's text; empty if it cannot be read now.
  std::string_view Read(ReadBuffer& buffer, Nanos now);

  const std::string& path() const { return path_; }
  // The errno of the last failure, of a file that could be read before; 0 if there is none. Given
  // once for each time it fails.
  int TakeFailure() { return std::exchange(failure_, 0); }

 private:
  void Fail(int error, Nanos now);

  std::string path_;
  Shape shape_;
  size_t size_;
  UniqueFd fd_;
  Nanos retry_at_ = 0;
  Nanos delay_ = 0;
  bool was_read_ = false;  // since it failed
  int failure_ = 0;
};

}  // namespace sonde::collect
