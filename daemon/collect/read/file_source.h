// A source that is one text file of the kernel's.
//
// A derived class says what the text means; reading, and values that are missing when the file
// cannot be read, are the same for all.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/parse.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

// The declarations in tables whose entries have one declaration each.
template <typename... Table>
std::vector<MetricDecl> DeclarationsOf(const Table&... tables) {
  std::vector<MetricDecl> declarations;
  const auto add = [&](const auto& table) {
    for (const auto& entry : table) declarations.push_back(entry.decl);
  };
  (add(tables), ...);
  return declarations;
}

class FileSource : public Source {
 public:
  // `buffer` is shared with other sources and outlives this one.
  FileSource(std::string path, Shape shape, size_t size, ReadBuffer& buffer)
      : reader_(std::move(path), shape, size), buffer_(buffer) {}

  Group group() const override { return Group::kOs; }
  void Sample(Nanos now) final {
    if (stopped_) return;
    const std::string_view text = reader_.Read(buffer_, now);
    if (text.empty()) {
      ClearValues();
      if (const int error = reader_.TakeFailure(); error != 0) NoteFailure(error, now);
    } else {
      Parse(text);
    }
  }
  // Takes the values from the file's text, which may be cut short or not what it should be.
  virtual void Parse(std::string_view text) = 0;

 protected:
  void ClearValues() { std::fill(values_.begin(), values_.end(), kMissing); }
  // The file is not worth its price: it is not read again, and the values are missing.
  void StopReading() {
    stopped_ = true;
    ClearValues();
  }
  // The series of a declaration; the value is missing until it is read.
  void AddSeries(const MetricDecl& decl, Tags tags = {}) {
    Series& s = series_.emplace_back();
    s.metric = Metric(decl);
    s.tags = std::move(tags);
    values_.push_back(kMissing);
  }

 private:
  // Notes that a file which could be read before cannot be now; only the first times.
  void NoteFailure(int error, Nanos now);

  FileReader reader_;
  int failures_ = 0;
  ReadBuffer& buffer_;
  bool stopped_ = false;
};

}  // namespace sonde::collect
