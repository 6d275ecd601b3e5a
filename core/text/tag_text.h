// Any text, and a place in a file, as the value of a tag: names of functions, which are as long and
// as odd as their authors like.
//
// Free of dependencies, as names.h is, and for the same users.
//
// Thread safety: functions without state; signal handlers too.
#pragma once

#include <stddef.h>

#include <string_view>

#include "core/text/names.h"

namespace sonde {

using TagText = char[kMaxNameLength + 1];

// `out` gets the text, ended by a zero: what a tag may not have becomes '?', and a text that is too
// long is cut and ends with '~' and a number made of the whole: instances of one template differ at
// the end.
void PutTagText(std::string_view text, TagText& out);

// The same of a file and a place in it: "libm.so.6+0x1f00".
void PutPlace(std::string_view file, uint64_t place, TagText& out);

}  // namespace sonde
