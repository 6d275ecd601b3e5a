#include "daemon/add_environment.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace sonde {
namespace {

std::string_view NameOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

// The environment's for good.
char* Kept(const std::string& entry) {
  auto copy = std::make_unique<char[]>(entry.size() + 1);
  std::memcpy(copy.get(), entry.c_str(), entry.size() + 1);
  return copy.release();
}

}  // namespace

void AddToEnvironment(std::span<const std::string> entries) {
  if (entries.empty()) return;
  std::vector<char*> all;
  for (char** at = environ; *at != nullptr; ++at) {
    const bool replaced = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
      return NameOf(entry) == NameOf(*at);
    });
    if (!replaced) all.push_back(*at);
  }
  for (const std::string& entry : entries) all.push_back(Kept(entry));
  auto array = std::make_unique<char*[]>(all.size() + 1);
  std::copy(all.begin(), all.end(), array.get());
  array[all.size()] = nullptr;
  std::atomic_ref(environ).store(array.release(), std::memory_order_release);
}

}  // namespace sonde
