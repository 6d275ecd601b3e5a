#include "daemon/collect/read/file_reader.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace sonde::collect {

namespace {

// A read of records ends early only when the kernel's page is full but for less than one record,
// and no record is half a page long: a shorter text is whole.
constexpr size_t kLeastPage = 2048;

}  // namespace

std::string_view ReadText(int fd, Shape shape, size_t& size, ReadBuffer& buffer, int& error) {
  size_t got = 0;
  error = 0;
  for (;;) {
    char* const text = buffer.Reserve(size);
    const ssize_t n = pread(fd, text + got, size - got, static_cast<off_t>(got));
    if (n < 0) {
      if (errno == EINTR) continue;
      error = -errno;
      return {};
    }
    got += static_cast<size_t>(n);
    if (n == 0 || (got < size && (shape == Shape::kWhole || got < kLeastPage))) return {text, got};
    if (got < size) continue;
    if (size >= kMaxFileSize) {
      error = -EFBIG;
      return {};
    }
    size *= 2;
  }
}

std::string_view FileReader::Read(ReadBuffer& buffer, Nanos now) {
  if (!fd_) {
    if (now < retry_at_) return {};
    fd_ = UniqueFd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd_) {
      Fail(errno, now);
      return {};
    }
  }
  int error = 0;
  const std::string_view text = ReadText(fd_.get(), shape_, size_, buffer, error);
  if (error != 0) {
    fd_.Reset();
    Fail(-error, now);
  } else {
    was_read_ = true;
    delay_ = 0;
  }
  return text;
}

void FileReader::Fail(int error, Nanos now) {
  if (std::exchange(was_read_, false)) failure_ = error;
  retry_at_ = now + delay_;
  delay_ = delay_ == 0 ? kSecond : std::min(2 * delay_, 64 * kSecond);
}

}  // namespace sonde::collect
