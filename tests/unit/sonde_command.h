// Runs the command sonde over an archive, as its users do. kSondeCommand is the program.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/unit/paths.h"

namespace sonde {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

// `scratch`: a directory, in which the archive is `archive`. `environment`: NAME=VALUE words.
inline Outcome RunSonde(const std::string& scratch, const std::string& arguments,
                        const std::string& environment = "") {
  const std::string err = scratch + "/stderr";
  const std::string command = "env LC_ALL=C.UTF-8 TZ=UTC SONDE_ARCHIVE='" + scratch + "/archive' " +
                              environment + " '" + kSondeCommand + "' " + arguments + " 2>'" + err +
                              "'";
  Outcome outcome;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    outcome.out.append(buffer, n);
  }
  outcome.code = WEXITSTATUS(::pclose(pipe));
  std::ostringstream text;
  text << std::ifstream(err).rdbuf();
  outcome.err = text.str();
  return outcome;
}

}  // namespace sonde
