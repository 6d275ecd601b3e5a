// A byte stream from an unproven peer: however it is cut, the same messages come out, none beyond
// the bound, and an error is final.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/link/link.h"

namespace {

constexpr size_t kBound = 64;

// All messages as one text, and whether the stream was refused.
std::string Take(std::string_view bytes, size_t piece) {
  sonde::tree::Deframer deframer;
  deframer.SetMaxMessage(kBound);
  std::string seen;
  while (!bytes.empty()) {
    const sonde::Status status =
        deframer.Feed(bytes.substr(0, piece), [&](uint8_t type, std::string_view payload) {
          if (payload.size() + 1 > kBound) std::abort();
          sonde::tree::AppendMessage(type, payload, seen);
          return true;
        });
    if (!status.ok()) return seen + "refused";
    bytes.remove_prefix(piece < bytes.size() ? piece : bytes.size());
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = Take(bytes, size);
  for (const size_t piece : {1, 3, 7}) {
    if (Take(bytes, piece) != whole) std::abort();
  }
  return 0;
}
