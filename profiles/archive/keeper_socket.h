// The socket db.sock, over which commands ask the process that keeps an archive (archive/keeper.h):
// the code that both ends share.
//
// A question is one line; the file of an import comes with it as a descriptor. The answer has any
// number of lines "behind WORK\n" while other work comes first (WORK is the first word of its
// question), then lines "at DONE TOTAL\n" while its own work goes on. Its last line is "ok N\n", or
// "ok N MORE\n" with more text, or "error WHY\n".
//
// Thread safety: values and functions without state.
#pragma once

#include <sys/un.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "core/unique_fd.h"

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

inline constexpr std::string_view kBehind = "behind ";

// The socket's address; it is valid as long as `directory` is open.
Result<sockaddr_un> AddressOf(const std::string& root, UniqueFd& directory);
UniqueFd MakeSocket();
// How long one call waits for the other end.
void SetPatience(int fd, Nanos patience);
// Whether the process at the other end is ours or root's.
bool IsOurs(int fd);

// Sends all of `text`; false if the other end does not take it.
bool SendAll(int to, std::string_view text, int fd = -1);

// The lines that come over a connection.
class LineReader {
 public:
  // Takes up to `files` descriptors in all, and reads nothing more from a sender of more.
  explicit LineReader(int from, size_t files = 0) : from_(from), files_(files) {}
  // The next line with its newline; without one, the bytes that came before the connection ended,
  // the patience was over or `limit` bytes were read.
  std::string Next(size_t limit);
  // The descriptors that were received so far.
  std::vector<UniqueFd> TakeFiles() { return std::move(got_); }

 private:
  bool Receive();

  const int from_;
  const size_t files_;
  std::string buffer_;
  std::vector<UniqueFd> got_;
};

// Whether the text can name a work.
bool IsWord(std::string_view text);

// A line of an answer.
struct AnswerLine {
  bool last = false;   // false: it tells how far the work is, or
  std::string behind;  // if not "": which other work comes first
  uint64_t count = 0;  // N of the last line, DONE of others
  uint64_t total = 0;
  std::string more;
};
// kIo with the text of an error; kCorrupt for a text that is no line of an answer.
Result<AnswerLine> ParseAnswerLine(std::string_view line);

}  // namespace sonde::keeper
