// Reading the ring of moments of one application process (libclient/layout.h).
//
// A moment is copied before it is looked at, and taken if it was whole; moments that were
// overwritten before they could be read are counted by their tickets.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstdint>
#include <functional>

#include "core/annotation.h"
#include "libclient/layout.h"

namespace sonde::collect {

class AppRing {
 public:
  // Annotations have neither node nor task; their time is the process's word.
  using Take = std::function<void(Annotation annotation)>;

  // Gives `take` the moments told since the last call, in order; returns how many are lost,
  // malformed ones included. `last`: nobody writes any more.
  uint64_t Read(const char* base, bool last, const Take& take);

 private:
  enum class Found : unsigned char { kWhole, kUnfinished, kGone };
  static Found Copy(const char* base, uint64_t ticket, uint32_t limit, client::Moment& out);

  uint64_t next_ = 0;  // ticket
  // Tickets below it had their time: a moment of theirs that is still not finished is given up.
  uint64_t awaited_ = 0;
};

}  // namespace sonde::collect
