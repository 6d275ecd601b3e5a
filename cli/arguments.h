// What a subcommand accepts: flags, options with a value, and arguments by their place.
//
// CLI11 reads them. Only arguments.cc and main.cc include it: a file that includes it takes 10 s to
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

// One flag, option or argument. The parser holds the object to which this refers.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument Required() const;
  // How the help names its value: "TIME".
  Argument Type(const std::string& name) const;
  // The help shows the value that is used if the option is not given.
  Argument ShowDefault() const;
  Argument OneOf(const std::vector<std::string>& values) const;
  Argument Within(uint64_t low, uint64_t high) const;
  Argument ExistingFile() const;
  // `check` says what is wrong with a value.
  Argument Checked(std::function<Status(const std::string&)> check) const;
  // One value each time; the option may be given several times.
  Argument Repeated() const;
  // One value holds several, with this character between them.
  Argument Between(char separator) const;
  // Whether the command line has it; valid once that was read.
  bool given() const;

 private:
  CLI::Option* option_;
};

class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(&app) {}

  // Adds a subcommand of this one.
  Arguments Command(const std::string& name, const std::string& help) const;
  // A subcommand must be named. Options of this command may be given behind it.
  void RequireCommand() const;
  // Options that this one does not know may belong to its parent command.
  void PassOn() const;
  void PassOnFromAll() const;

  // `names`: "-n,--limit", or "NAME" for an argument by its place. The variables must live until
  // the command line was read.
  Argument Flag(const std::string& names, bool& given, const std::string& help) const;
  Argument Option(const std::string& names, std::string& value, const std::string& help) const;
  Argument Option(const std::string& names, std::vector<std::string>& values,
                  const std::string& help) const;
  Argument Option(const std::string& names, int& value, const std::string& help) const;
  Argument Option(const std::string& names, uint16_t& value, const std::string& help) const;
  Argument Option(const std::string& names, uint64_t& value, const std::string& help) const;
  // `set` takes each text, and says what is wrong with the text.
  using Set = std::function<Status(const std::string& text)>;
  Argument Checked(const std::string& names, const std::string& help, Set set) const;
  Argument CheckedEach(const std::string& names, const std::string& help, Set set) const;

  // Called after the command line that names this subcommand was read; says what is wrong with it.
  void OnRead(const std::function<void()>& f) const;
  void OnRead(const std::string& name, const std::function<Status()>& f) const;

 private:
  CLI::App* app_;
};

}  // namespace sonde::cli
