// Blocks all signals on the calling thread as long as this object lives, so that a thread started
// meanwhile gets none: signals are for the one thread on which the program waits for them.
//
// Thread safety: one thread.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace sonde {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace sonde
