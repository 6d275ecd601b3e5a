// What a function is called: its symbol in the file that it was loaded from, also of a static one.
//
// Thread safety: signal handlers too, but one caller at a time. Memory comes from mmap alone. A
// file's first function takes as long as its tables are read, others of the program some 10 us,
// those of libraries as long as the kernel writes /proc/self/maps.
#pragma once

#include <stdint.h>

#include "core/text/symbol_tags.h"

namespace sonde::functions {

struct FunctionName {
  SymbolTags function;  // its symbol; FILE+0xADDRESS if it has none; never empty
  TagText object;       // the library's file; empty for a function of the program itself
};

void FindFunctionName(uintptr_t address, FunctionName* name);

}  // namespace sonde::functions
