// Variables that this process gets while it runs, for libraries that are loaded later.
//
// setenv() frees the array that another thread may be reading, as a resolver does. Here the old
// array stays, and the environment is replaced at once.
//
// Thread safety: one thread; others may read the environment meanwhile.
#pragma once

#include <span>
#include <string>

namespace sonde {

// Entries are NAME=VALUE; one that is there already gets the new value. What is added stays for as
// long as the process lives.
void AddToEnvironment(std::span<const std::string> entries);

}  // namespace sonde
