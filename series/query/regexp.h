// Regular expressions of queries: RE2's, which take time linear in the text whatever the pattern.
// Java's, and so OpenTSDB's, are the same except for lookaround and references to groups, which
// would need backtracking: these are refused.
//
// Thread safety: a compiled expression may be used by several threads.
#pragma once

#include <memory>
#include <string_view>

#include "core/status.h"

namespace re2 {
class RE2;
}

namespace sonde {

class Regexp {
 public:
  // kInvalid says what is wrong with the pattern; also for one that needs too much memory.
  static Result<Regexp> Compile(std::string_view pattern);

  // Whether it matches somewhere in `text`, which is UTF-8.
  bool Matches(std::string_view text) const;

 private:
  std::shared_ptr<const re2::RE2> code_;
};

}  // namespace sonde
