// srun's stderr, as far as it is one. A user may start srun with descriptor 2 closed; the number is
// then given to a file or a socket of srun's own, and a line written there would spoil what srun
// says to others.
//
// Thread safety: one thread at a time.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

namespace sonde::launch {

class ErrorStream {
 public:
  // Remembers what descriptor 2 is now: made early in the process.
  ErrorStream() : file_(Look()) {}
  // Whether descriptor 2 was a stderr then and is the same now.
  bool open() const { return file_ && Look() == file_; }

 private:
  struct File {
    dev_t device;
    ino_t inode;
    bool operator==(const File&) const = default;
  };

  // What a process was started with is not closed on exec; what Slurm opens itself is. Nothing
  // without a type, such as an eventfd, and nothing that is only read is anybody's stderr.
  static std::optional<File> Look() {
    const int flags = ::fcntl(STDERR_FILENO, F_GETFD);
    const int mode = ::fcntl(STDERR_FILENO, F_GETFL);
    struct stat info {};
    if (flags < 0 || mode < 0 || ::fstat(STDERR_FILENO, &info) != 0) return std::nullopt;
    if ((flags & FD_CLOEXEC) != 0 || (mode & O_ACCMODE) == O_RDONLY ||
        (info.st_mode & S_IFMT) == 0) {
      return std::nullopt;
    }
    return File{info.st_dev, info.st_ino};
  }

  const std::optional<File> file_;
};

}  // namespace sonde::launch
