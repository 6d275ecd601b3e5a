#include "daemon/collect/read/directory.h"

#include <algorithm>
#include <filesystem>

#include "daemon/collect/read/parse.h"

namespace sonde::collect {
namespace {

constexpr size_t kMaxNames = 4096;
constexpr size_t kEntrySize = 128;

}  // namespace

std::vector<std::string> ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(path, error);
       !error && at != std::filesystem::directory_iterator() && names.size() < kMaxNames;
       at.increment(error)) {
    names.push_back(at->path().filename());
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

std::string FirstLine(const std::string& path, ReadBuffer& buffer) {
  FileReader file(path, Shape::kWhole, kEntrySize);
  return std::string(Cursor(file.Read(buffer, 0)).Line());
}

}  // namespace sonde::collect
