// What was parsed last of an archive's profiles. The description of a large step is megabytes of
// JSON, and whoever reads anything of the step needs it: of 100,000 nodes it takes longer to parse
// than to find a metric of one of them.
//
// What is kept is known by its text. So nobody has to know when a record or a file has changed.
//
// Thread safety: any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/job.h"
#include "core/status.h"
#include "profiles/model/profile.h"

namespace sonde {

template <typename T>
class KeptParsed {
 public:
  using Ptr = std::shared_ptr<const T>;
  using Parser = Result<T> (*)(std::string_view text);
  // Shorter texts are parsed in less than a millisecond.
  static constexpr size_t kLeastBytes = 64u << 10;
  // Of the texts; what is made of them takes as much again.
  static constexpr size_t kMostBytes = 32u << 20;

  explicit KeptParsed(Parser parser) : parser_(parser) {}

  // `name`: of the profile; its newest text is kept.
  Result<Ptr> Parse(const std::string& name, std::string_view text) {
    if (Ptr known = Find(name, text)) return known;
    Result<T> parsed = parser_(text);
    if (!parsed.ok()) return parsed.status();
    auto value = std::make_shared<const T>(*std::move(parsed));
    Keep(name, text, value);
    return Ptr(std::move(value));
  }
  // How often a text was parsed.
  size_t parsed() const {
    const std::lock_guard guard(mutex_);
    return parsed_;
  }

 private:
  struct Kept {
    std::string name;
    std::string text;
    Ptr value;
  };

  Ptr Find(const std::string& name, std::string_view text) {
    const std::lock_guard guard(mutex_);
    const auto found = std::ranges::find_if(
        kept_, [&](const Kept& one) { return one.name == name && one.text == text; });
    if (found == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found);
    return found->value;
  }
  void Keep(const std::string& name, std::string_view text, const Ptr& value) {
    const std::lock_guard guard(mutex_);
    ++parsed_;
    if (text.size() < kLeastBytes || text.size() > kMostBytes) return;
    const auto older = std::ranges::find(kept_, name, &Kept::name);
    if (older != kept_.end()) Forget(older);
    kept_.push_front({name, std::string(text), value});
    bytes_ += text.size();
    while (bytes_ > kMostBytes) Forget(std::prev(kept_.end()));
  }
  void Forget(typename std::list<Kept>::iterator one) {
    bytes_ -= one->text.size();
    kept_.erase(one);
  }

  const Parser parser_;
  mutable std::mutex mutex_;  // guards the members below
  std::list<Kept> kept_;      // the one that was asked for last comes first
  size_t bytes_ = 0;
  size_t parsed_ = 0;
};

using DescriptionPtr = KeptParsed<JobDescription>::Ptr;

// Of the profiles of one archive.
struct KeptRecords {
  KeptParsed<JobDescription> descriptions{DescriptionFromJson};
  KeptParsed<Profile> profiles{ProfileFromJson};
};

}  // namespace sonde
