// Bodies as gzip (RFC 1952): unpacks those that come, packs those that go.
//
// Thread safety: functions without state; a Gzip is for one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde::web {

// kInvalid for what is no whole gzip file, kLimit if it would have more than `limit` bytes. One
// member only, as every program writes it.
Result<std::string> Gunzip(std::string_view bytes, size_t limit);

// Packs what is added piece by piece, at level 1: what is left to gain is not worth the time of a
// head. Holds 270 kB.
class Gzip {
 public:
  Gzip();
  ~Gzip();
  // Appends to `out` what is ready of it, perhaps nothing; `last` ends the file.
  void Add(std::string_view bytes, bool last, std::string& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sonde::web
