// C++ names as people write them.
//
// The symbols come from processes of the application and are not trusted, and a demangler takes as
// much time, stack and memory as a symbol wants: few characters may stand for a name without end.
// So a child of this process translates them, with limits on its memory and time, and nothing that
// becomes of it harms the daemon. The child runs no program and has ended when Demangle returns.
//
// Thread safety: from the thread that lives as long as the process, which is the loop's; the kernel
// takes the end of the thread that started the child for the end of its parent.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/time.h"

namespace sonde::collect {

// A symbol and what it becomes: a value of a tag (PutTagText), of the symbol itself if that is not
// a C++ function's or cannot be translated.
//
// Constructors and destructors have up to three symbols and one name: of the base of another class,
// of an object by itself, of one that is deleted. The last two are marked "[complete]" and
// "[deleting]".
struct CxxName {
  std::string_view symbol;
  std::string* value;
};

// The values are made of the symbols.
void LeaveMangled(std::span<const CxxName> names);

// Waits no longer than `limit`. False if some were not tried to the end: a symbol takes more than
// 50 ms of processor time, or the node has no process to give.
bool Demangle(std::span<const CxxName> names, Nanos limit = kSecond);

// What the child makes of one symbol; "" if it is not that of a C++ function. Not for use in the
// daemon.
std::string DemangleHere(const std::string& symbol);

}  // namespace sonde::collect
