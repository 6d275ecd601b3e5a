// How much of a busy processor a thread claims beside others.
//
// Thread safety: a function without state.
#pragma once

namespace sonde {

// The calling thread, and what it starts from now on, has `more` more niceness than it had, as far
// as there is (19). It cannot be taken back without a privilege.
void BeNicer(int more);

}  // namespace sonde
