// A source whose file has a line for each number, its name first: /proc/vmstat, /proc/meminfo.
//
// Which lines are wanted is a table. Their places are remembered, each as the bytes that lie
// between it and the wanted line before it, so that a sample looks at no other line. When a number
// between them gained or lost a digit, the lines between are walked, once; when the names are
// others, the whole file is looked through. Kernels differ in the lines they have, and do not
// change them while they run.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/read/file_source.h"

namespace sonde::collect {

enum class KeyUnit : unsigned char { kOne, kKibibytes, kPages };

inline constexpr std::string_view kAlone[] = {""};

// One metric and its line, named `key` and one of the endings. Lines that differ in the ending
// alone are added up; kernels have some of them.
struct KeyField {
  std::string_view key;
  MetricDecl decl;
  KeyUnit unit = KeyUnit::kOne;
  std::span<const std::string_view> endings = kAlone;
};

class KeyValueSource : public FileSource {
 public:
  void Parse(std::string_view text) final;
  bool counts_from_boot() const final { return true; }

 protected:
  // The fields of a step of that level are kept; the tables outlive the source. A field's name may
  // be the beginning of another's: the first field that fits a line counts.
  KeyValueSource(std::string path, Shape shape, std::vector<std::span<const KeyField>> tables,
                 int level, ReadBuffer& buffer);

 private:
  enum class Outcome : unsigned char { kRead, kCutShort, kChanged };
  struct Line {
    std::string name;  // with the blank behind it
    size_t column;
    double scale;
    bool adds;     // to lines before it of the same column
    size_t lines;  // unwanted ones that lie between it and the wanted line before
    size_t bytes;  // of those when it was read last
  };

  Outcome ReadLines(std::string_view text);
  void TakeValue(Cursor& rest, const Line& line);
  void ClearFrom(size_t first);
  void Rescan(std::string_view text);
  void AddLine(std::string_view key, const KeyField& field, size_t lines, size_t bytes);
  void DeclareSeries();
  const KeyField* Find(std::string_view key) const;
  double Scale(KeyUnit unit) const;

  const std::vector<std::span<const KeyField>> tables_;
  const int level_;
  const double page_size_;
  // Two scans in a row found the same: a line that was garbled once would else be lost for good.
  bool settled_ = false;
  Outcome outcome_ = Outcome::kChanged;  // of the last reading
  std::vector<Line> lines_;              // the wanted ones, in the order of the file
  std::string last_;                     // name of the file's last line
  std::vector<const KeyField*> fields_;  // by column
};

}  // namespace sonde::collect
