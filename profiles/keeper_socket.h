// The socket db.sock, over which commands ask whoever keeps an archive (archive_keeper.h): what
// both ends of it share.
//
// A question is one line; the file of an import comes with it as a descriptor. The answer is any
// number of lines "at DONE TOTAL\n", while the work goes on, and then "ok N\n", how many, perhaps
// with more behind it, "ok N MORE\n", or "error WHY\n".
//
// Thread safety: values and functions without state.
#pragma once

#include <sys/un.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "core/time.h"

namespace sonde::keeper {

inline constexpr std::string_view kSocketName = "db.sock";
inline constexpr size_t kMaxQuestion = 32768;
// The report of a prune or a repair may name 10,000 profiles.
inline constexpr size_t kMaxAnswer = size_t{8} << 20;

inline constexpr std::string_view kIngest = "ingest";
inline constexpr std::string_view kTag = "tag ";
inline constexpr std::string_view kPrune = "prune ";
inline constexpr std::string_view kCompact = "compact";
inline constexpr std::string_view kRepair = "repair";
inline constexpr std::string_view kImport = "import ";

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

// Where the socket is; the address holds as long as `directory` is open.
Result<sockaddr_un> AddressOf(const std::string& root, Descriptor& directory);
Descriptor MakeSocket();
// How long one call waits for the other end.
void SetPatience(int fd, Nanos patience);
// Whether the other end is a process of ours or of root.
bool IsOurs(int fd);

// All of it; false if the other end does not take it.
bool SendAll(int to, std::string_view text, int fd = -1);

// The lines that come over a connection.
class LineReader {
 public:
  explicit LineReader(int from) : from_(from) {}
  // With its end; without it, what came before the end of the connection, of the patience or of
  // `limit` bytes.
  std::string Next(size_t limit);
  // The descriptor that came with them, or none.
  Descriptor TakeFile() { return std::move(file_); }

 private:
  bool Receive();

  const int from_;
  std::string buffer_;
  Descriptor file_;
};

// A line of an answer.
struct AnswerLine {
  bool last = false;   // else it tells how far the work is
  uint64_t count = 0;  // N of the last line, DONE of others
  uint64_t total = 0;
  std::string more;
};
// kIo with what an error says, kCorrupt for anything that is no line of an answer.
Result<AnswerLine> ParseAnswerLine(std::string_view line);

}  // namespace sonde::keeper
