// A source whose file has a line of numbers for each of many things: processors, memory zones,
// interrupts.
//
// A derived class says where a line's name ends, what series a line has and how it is read. The
// names of the last reading are remembered by line, so nothing is looked up while no line comes or
// goes. A line that is cut short does not count, and the values of those behind it are missing.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/read/file_source.h"

namespace sonde::collect {

class RowsSource : public FileSource {
 public:
  void Parse(std::string_view text) final;
  bool counts_from_boot() const override { return true; }

 protected:
  RowsSource(std::string path, Shape shape, ReadBuffer& buffer)
      : FileSource(std::move(path), shape, 4096, buffer) {}

  // Takes the lines of headings off `text`. False if the series must be declared anew.
  virtual bool TakeHead(std::string_view& /*text*/) { return true; }
  // Series that belong to no line; they come first.
  virtual void DeclareHead() {}
  // Takes the line's name and goes behind it; empty if the line is none of these.
  virtual std::string_view TakeName(Cursor& line) = 0;
  // Adds the series of a line that is new, if it has any. False if it may need others later: then
  // NeedsOthers is asked at each reading.
  virtual bool DeclareRow(std::string_view name, Cursor line) = 0;
  virtual bool NeedsOthers(Cursor /*line*/, size_t /*series*/) const { return false; }
  // Before the first line.
  virtual void Begin() {}
  // Reads a line into its values, which are missing until then.
  virtual void ReadRow(Cursor& line, std::span<double> values) = 0;
  // All lines were read; `whole` if none was absent.
  virtual void Finish(bool /*whole*/) {}

 private:
  struct Row {
    std::string name;
    size_t column;  // of its first series
    size_t width;   // how many it has
    bool settled;   // whether it will have no other series
  };
  bool ReadRows(std::string_view text, bool cut);
  void Rescan(std::string_view text);

  bool scanned_ = false;
  std::vector<Row> rows_;  // in the order of the file
};

// A line of headings such as "  CPU0  CPU1", remembered with the processors that it names.
class CpuHead {
 public:
  // True if it is the line of the last call.
  bool Take(std::string_view line);
  // Their numbers, in the order of the line.
  const std::vector<std::string>& cpus() const { return cpus_; }

 private:
  std::string line_;
  std::vector<std::string> cpus_;
};

}  // namespace sonde::collect
