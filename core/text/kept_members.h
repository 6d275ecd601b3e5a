// Members of JSON objects that this version of Sonde does not know, because a later one has written
// them. They are kept as they are and written again with the object, so that a profile that was
// changed here (tags, repair, parts that are put together) has lost nothing for the later version.
//
// A value has one list. Objects within it that have no list of their own, such as the owner of an
// extreme, have their members here as well, under the name of the object (KeptName).
//
// Thread safety: values.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sonde {

// The name of a member of the object `within`; `member` is "" for the value of a known member whose
// words are not known, such as a state.
inline std::string KeptName(std::string_view within, std::string_view member) {
  constexpr char kSeparator = '\x1f';  // no name has it that is not meant to confuse
  std::string name(within);
  name.push_back(kSeparator);
  return name.append(member);
}

class KeptMembers {
 public:
  struct Member {
    std::string name;
    std::string json;  // its value
    bool operator==(const Member&) const = default;
  };

  void Add(std::string name, std::string json) {
    list_.push_back({std::move(name), std::move(json)});
  }
  // nullptr if there is none.
  const std::string* Find(std::string_view name) const {
    const auto at =
        std::find_if(list_.begin(), list_.end(), [&](const Member& m) { return m.name == name; });
    return at == list_.end() ? nullptr : &at->json;
  }
  // Adds the members of `other` that are not here.
  void Merge(const KeptMembers& other) {
    for (const Member& member : other.list_) {
      if (Find(member.name) == nullptr) list_.push_back(member);
    }
  }
  const std::vector<Member>& list() const { return list_; }
  bool empty() const { return list_.empty(); }
  bool operator==(const KeptMembers&) const = default;

 private:
  std::vector<Member> list_;
};

}  // namespace sonde
