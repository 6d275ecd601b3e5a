// Bodies as gzip (RFC 1952): unpacks those of requests, packs those of responses.
//
// Thread safety: functions without state; a Gzip is for one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde::web {

// kInvalid for bytes that are no whole gzip file, kLimit if the result would have more than `limit`
// bytes. One member only, as every program writes it.
Result<std::string> Gunzip(std::string_view bytes, size_t limit);

// Packs bytes piece by piece, at level 1: a better ratio is not worth the time that it takes the
// head. Holds 270 kB.
class Gzip {
 public:
  Gzip();
  ~Gzip();
  // Appends the packed bytes that are ready to `out`, perhaps none; `last` ends the file.
  void Add(std::string_view bytes, bool last, std::string& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sonde::web
