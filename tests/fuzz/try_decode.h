// Fuzzers of messages share it.
#pragma once

#include <string_view>

// What decodes must encode, and decode to the same again.
template <typename M>
void TryDecode(std::string_view bytes) {
  M message;
  if (!Decode(bytes, message).ok()) return;
  M again;
  if (!Decode(Encode(message), again).ok() || Encode(again) != Encode(message)) __builtin_trap();
}
