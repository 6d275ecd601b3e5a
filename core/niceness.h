// A thread's share of a busy processor beside other threads.
//
// Thread safety: a function without state.
#pragma once

namespace sonde {

// Raises the niceness of the calling thread, and of what it starts from now on, by `more`, to 19 at
// most. This cannot be undone without a privilege.
void BeNicer(int more);

}  // namespace sonde
