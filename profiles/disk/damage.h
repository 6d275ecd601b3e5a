// What readers of an archive have found that cannot be read, while they went on with the rest.
//
// Thread safety: any thread.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sonde {

class Damage {
 public:
  static constexpr size_t kMost = 20;

  // `what` cannot be read, such as "the description of KEY".
  void Add(std::string_view what, const Status& why) {
    Add(std::string(what) + " (" + std::string(why.message()) + ")");
  }
  void Add(std::string text) {
    std::function<void(const std::string&)> hear;
    {
      const std::lock_guard guard(mutex_);
      if (std::find(found_.begin(), found_.end(), text) != found_.end()) return;
      if (found_.size() > kMost) return;
      if (found_.size() == kMost) text = "and more";
      found_.push_back(text);
      hear = hear_;
    }
    if (hear) hear(text);
  }
  // Everything that was found, each once; if it was too much, "and more" is the last.
  std::vector<std::string> List() const {
    const std::lock_guard guard(mutex_);
    return found_;
  }
  // What is found from now on is told as well, once.
  void OnFound(std::function<void(const std::string&)> hear) {
    const std::lock_guard guard(mutex_);
    hear_ = std::move(hear);
  }
  // The archive was made anew: what was found before is no more.
  void Forget() {
    const std::lock_guard guard(mutex_);
    found_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> found_;
  std::function<void(const std::string&)> hear_;
};

}  // namespace sonde
