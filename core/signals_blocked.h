// Blocks all signals on the calling thread as long as this lives, so that a thread that is started
// meanwhile takes none: signals are for the thread that the program waits for them on.
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
