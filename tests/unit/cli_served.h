// The command `sonde serve` as its users run it; kSondeCommand is the program.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/paths.h"

namespace sonde::cli {

// `sonde serve` with its standard output in a pipe; ended with the object.
class Served {
 public:
  Served(const std::string& root, std::vector<std::string> arguments) {
    int out[2];
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    arguments.insert(arguments.begin(), {kSondeCommand, "--archive", root, "serve"});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(out[1]);
    out_ = out[0];
  }
  ~Served() {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    close(out_);
  }
  // What it prints up to `last`.
  std::string ReadUntil(std::string_view last) {
    std::string text;
    char c;
    while (text.find(last) == std::string::npos && read(out_, &c, 1) == 1) text += c;
    return text;
  }
  // Its exit code after SIGTERM.
  int Stop() {
    kill(pid_, SIGTERM);
    return Wait();
  }
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

}  // namespace sonde::cli
