// Regular expressions of queries: Perl's, of which Java's, and so OpenTSDB's, are close relatives.
//
// One that backtracks without end is stopped: a text for which it takes more than kMatchLimit steps
// (some milliseconds) does not match.
//
// Thread safety: a compiled expression may be used by several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/status.h"

struct pcre2_real_code_8;

namespace sonde {

class Regexp {
 public:
  static constexpr uint32_t kMatchLimit = 100'000;

  // kInvalid says what is wrong with the pattern, and where.
  static Result<Regexp> Compile(std::string_view pattern);

  // Whether it matches somewhere in `text`.
  bool Matches(std::string_view text) const;

 private:
  std::shared_ptr<const pcre2_real_code_8> code_;
};

}  // namespace sonde
