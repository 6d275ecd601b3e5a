// A program of ours that this one may become or start later, held open from the start.
//
// The file of a program may be replaced or taken away while the program runs, as an update of the
// package does. Whoever looks for another program by a path then finds none, or that of another
// version. The one held open is the one that was installed beside this one.
//
// Thread safety: const after construction.
#pragma once

#include <string>
#include <string_view>

#include "core/unique_fd.h"

namespace sonde {

class HeldProgram {
 public:
  // The program whose path is this one's with `suffix` behind it: "-head" for sonded-head.
  static HeldProgram Beside(std::string_view suffix);

  // Not held: a script, which its interpreter opens by the path.
  static HeldProgram ByPath(std::string path);

  // The paths to execute, the second one if the first one fails: a file on a network filesystem may
  // be gone although it is open. Children have the descriptor until they execute a program.
  const std::string& held() const { return held_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string held_;
  UniqueFd fd_;
};

}  // namespace sonde
