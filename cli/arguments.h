// What a subcommand takes: flags, options with a value, and arguments by their place.
//
// CLI11 reads them. It is in arguments.cc and main.cc alone: every file that sees it takes 10 s to
// compile.
//
// Thread safety: one thread, main's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sonde::cli {

// One of them, and how it may be given. A value, which refers to what the parser holds.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument Required() const;
  // How the help names its value: "TIME".
  Argument Type(const std::string& name) const;
  // The help tells what it is if it is not given.
  Argument ShowDefault() const;
  Argument OneOf(const std::vector<std::string>& values) const;
  Argument Within(uint64_t low, uint64_t high) const;
  Argument ExistingFile() const;
  // `check` says what is wrong with a value.
  Argument Checked(std::function<Status(const std::string&)> check) const;
  // One value each time, and it may be given several times.
  Argument Repeated() const;
  // One value holds several, between these.
  Argument Between(char separator) const;
  // Whether the command line has it; after that was read.
  bool given() const;

 private:
  CLI::Option* option_;
};

class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(&app) {}

  // A subcommand of this one.
  Arguments Command(const std::string& name, const std::string& help) const;
  // One of its subcommands has to be named. What is meant for all of them may stand behind it.
  void RequireCommand() const;
  // What it does not know may be meant for the command that it is a part of.
  void PassOn() const;
  void PassOnFromAll() const;

  // `names`: "-n,--limit", or "NAME" for one by its place. The variables must live until the
  // command line was read.
  Argument Flag(const std::string& names, bool& given, const std::string& help) const;
  Argument Option(const std::string& names, std::string& value, const std::string& help) const;
  Argument Option(const std::string& names, std::vector<std::string>& values,
                  const std::string& help) const;
  Argument Option(const std::string& names, int& value, const std::string& help) const;
  Argument Option(const std::string& names, uint16_t& value, const std::string& help) const;
  Argument Option(const std::string& names, uint64_t& value, const std::string& help) const;
  // `set` takes each text, and says what is wrong with it.
  using Set = std::function<Status(const std::string& text)>;
  Argument Checked(const std::string& names, const std::string& help, Set set) const;
  Argument CheckedEach(const std::string& names, const std::string& help, Set set) const;

  // Called when the command line names this subcommand and was read; says what is wrong with it.
  void OnRead(const std::function<void()>& f) const;
  void OnRead(const std::string& name, const std::function<Status()>& f) const;

 private:
  CLI::App* app_;
};

}  // namespace sonde::cli
