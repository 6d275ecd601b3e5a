// A tree of files in place of /proc and /sys, in a temporary directory of its own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "daemon/collect/read/source.h"

namespace sonde::collect {

class Tree {
 public:
  Tree() {
    std::string pattern = std::filesystem::temp_directory_path() / "sonde-collect-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~Tree() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  const std::string& path() const { return path_; }
  Roots roots() const { return {path_ + "/proc", path_ + "/sys"}; }
  // Replaces the text of a file, in place as the kernel does.
  void Write(const std::string& name, std::string_view text) const {
    const std::filesystem::path file = path_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary);
    out << text;
    if (!out.flush()) std::abort();
  }
  void Remove(const std::string& name) const { std::filesystem::remove_all(path_ + "/" + name); }

 private:
  std::string path_;
};

// The index of a series among `series` by name{tags}, or their number.
inline size_t Find(const std::vector<Series>& series, std::string_view name) {
  size_t i = 0;
  while (i < series.size() && SeriesName(series[i].metric.name, series[i].tags) != name) ++i;
  return i;
}
inline bool Has(const Source& source, std::string_view name) {
  return Find(source.series(), name) < source.series().size();
}
// The value of a source's series by name{tags}; fails the test if there is none.
inline double Value(const Source& source, std::string_view name) {
  const size_t i = Find(source.series(), name);
  EXPECT_LT(i, source.series().size()) << "no series " << name;
  return i < source.values().size() ? source.values()[i] : std::nan("");
}

}  // namespace sonde::collect
