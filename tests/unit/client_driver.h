// Drives client_process, the application of the tests of libsonde.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/paths.h"

namespace sonde {

class ClientProcess {
 public:
  using Environment = std::map<std::string, std::string>;

  // `errors`: a descriptor that becomes its standard error; `uid`: the user it runs as, 0 for ours.
  explicit ClientProcess(const Environment& environment, int errors = STDERR_FILENO, uid_t uid = 0,
                         const char* program = kClientProcess) {
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) abort();
    std::vector<std::string> texts;
    for (const auto& [key, value] : environment) texts.push_back(key + "=" + value);
    std::vector<char*> variables;
    for (std::string& text : texts) variables.push_back(text.data());
    variables.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      dup2(errors, STDERR_FILENO);
      for (int fd = 3; fd < 64; ++fd) close(fd);
      if (uid != 0 && setresuid(uid, uid, uid) != 0) _exit(127);
      char* arguments[] = {const_cast<char*>(program), nullptr};
      execve(program, arguments, variables.data());
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  ~ClientProcess() {
    if (pid_ > 0) End();
  }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  // Its answer; "dead" if it has none to give.
  std::string Do(const std::string& command) {
    const std::string line = command + "\n";
    if (write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return "dead";
    std::string answer;
    char c = 0;
    while (read(from_, &c, 1) == 1) {
      if (c == '\n') return answer;
      answer += c;
    }
    return "dead";
  }

  // Lets it come to its end; its wait status.
  int End() {
    close(to_);
    int status = -1;
    waitpid(pid_, &status, 0);
    close(from_);
    pid_ = -1;
    return status;
  }
  void Kill() {
    kill(pid_, SIGKILL);
    End();
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

}  // namespace sonde
