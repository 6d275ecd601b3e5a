// The socket db.sock, over which commands ask whoever keeps an archive (archive/keeper.h): what
// both ends of it share.
//
// A question is one line; the file of an import comes with it as a descriptor. The answer is any
// number of lines "behind WORK\n", while other work comes first, named by the first word of its
// question, and "at DONE TOTAL\n", while its own work goes on, and then "ok N\n", how many, perhaps
// with more behind it, "ok N MORE\n", or "error WHY\n".
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

// Where the socket is; the address holds as long as `directory` is open.
Result<sockaddr_un> AddressOf(const std::string& root, UniqueFd& directory);
UniqueFd MakeSocket();
// How long one call waits for the other end.
void SetPatience(int fd, Nanos patience);
// Whether the other end is a process of ours or of root.
bool IsOurs(int fd);

// All of it; false if the other end does not take it.
bool SendAll(int to, std::string_view text, int fd = -1);

// The lines that come over a connection.
class LineReader {
 public:
  // With up to `files` descriptors in all. Who sends more is not read from any further.
  explicit LineReader(int from, size_t files = 0) : from_(from), files_(files) {}
  // With its end; without it, what came before the end of the connection, of the patience or of
  // `limit` bytes.
  std::string Next(size_t limit);
  // The descriptors that came with what was received by now.
  std::vector<UniqueFd> TakeFiles() { return std::move(got_); }

 private:
  bool Receive();

  const int from_;
  const size_t files_;
  std::string buffer_;
  std::vector<UniqueFd> got_;
};

// Whether it can name a work.
bool IsWord(std::string_view text);

// A line of an answer.
struct AnswerLine {
  bool last = false;   // else it tells how far the work is, or
  std::string behind;  // not "": which other work comes first
  uint64_t count = 0;  // N of the last line, DONE of others
  uint64_t total = 0;
  std::string more;
};
// kIo with what an error says, kCorrupt for anything that is no line of an answer.
Result<AnswerLine> ParseAnswerLine(std::string_view line);

}  // namespace sonde::keeper
