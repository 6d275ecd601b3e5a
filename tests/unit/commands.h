// The main loop of a program that a test drives: a line of standard input is a command with its
// arguments, and each gets one line as its answer.
#pragma once

#include <unistd.h>

#include <map>
#include <sstream>
#include <string>

namespace sonde {

using Commands = std::map<std::string, std::string (*)(std::istream& arguments)>;

// Until the end of the input; the exit status. By read() and write(), which no library buffers: a
// process that forks has no rest of its parent's input.
inline int CarryOut(const Commands& commands) {
  std::string line;
  char c = 0;
  while (read(STDIN_FILENO, &c, 1) == 1) {
    if (c != '\n') {
      line += c;
      continue;
    }
    std::istringstream in(line);
    std::string command;
    in >> command;
    const auto found = commands.find(command);
    const std::string answer = found == commands.end() ? "unknown command" : found->second(in);
    if (write(STDOUT_FILENO, (answer + "\n").c_str(), answer.size() + 1) < 0) return 1;
    line.clear();
  }
  return 0;
}

}  // namespace sonde
