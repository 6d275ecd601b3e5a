// What readers of an archive have found that cannot be read, while they went on with the rest.
//
// Thread safety: any thread.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sonde {

class Damage {
 public:
  // `what` cannot be read, such as "the description of KEY".
  void Add(std::string_view what, const Status& why) {
    constexpr size_t kMost = 20;
    std::string text = std::string(what) + " (" + std::string(why.message()) + ")";
    const std::lock_guard guard(mutex_);
    if (std::find(found_.begin(), found_.end(), text) != found_.end()) return;
    if (found_.size() == kMost) {
      more_ = true;
    } else {
      found_.push_back(std::move(text));
    }
  }
  // "" or everything that was found so far, in one line.
  std::string Text() const {
    const std::lock_guard guard(mutex_);
    std::string all;
    for (const std::string& one : found_) all += (all.empty() ? "" : "; ") + one;
    return more_ ? all + "; and more" : all;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> found_;
  bool more_ = false;
};

}  // namespace sonde
