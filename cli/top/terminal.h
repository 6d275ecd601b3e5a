// The terminal, by ncurses: shows frames, of which only cells that changed are written, and reads
// keys. It is as it was before when the object is gone, and also when a signal ends the program.
//
// Thread safety: one thread, and one object in a process. Signals has to be made before any other
// thread, which takes over what it blocks.
#pragma once

#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include "cli/top/screen.h"
#include "cli/top/view.h"
#include "core/status.h"

namespace sonde::cli::top {

// The signals that concern a terminal or would end the program, read instead of caught.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }
  // The next one that has come; 0: none.
  int Next() const;

 private:
  sigset_t before_{};
  int fd_ = -1;
};

class Terminal {
 public:
  // kUnsupported: the type of the terminal is not known here.
  static Result<std::unique_ptr<Terminal>> Open(bool colour, bool unicode);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  size_t width() const;
  size_t height() const;
  // Whether its characters are UTF-8.
  bool unicode() const { return unicode_; }

  void Show(const Screen& screen);
  // The next key that was pressed, if any; `gone`: nobody can press one any more.
  std::optional<Key> Next(bool& gone);
  // The terminal has another size.
  void Resize();
  // Stops the process, as Ctrl-Z does, and goes on with a new frame.
  void Suspend();

 private:
  Terminal(bool colour, bool unicode);

  const bool colour_;
  const bool unicode_;
  std::optional<Screen> shown_;
};

}  // namespace sonde::cli::top
