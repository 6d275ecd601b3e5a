#include "core/text/step_title.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <vector>

namespace sonde {
namespace {

using Words = std::span<const std::string_view>;

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    words.push_back(text.substr(0, text.find(' ')));
    text.remove_prefix(words.back().size());
  }
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// The options of an interpreter that stand before its script. A letter that is in none of these is
// not known, and then the script is not looked for.
struct Interpreter {
  std::string_view flags;   // letters that may stand together in one word: -uB
  std::string_view valued;  // letters with a value: the rest of the word or, without one, the next
  std::string_view attached;  // letters whose value, if there is one, is the rest of the word
  std::string_view module;    // of the valued ones: what it names is what runs
  // Words with a value in the next word; other words with two dashes stand alone.
  std::array<std::string_view, 8> long_valued;
};

constexpr Interpreter kPython = {"bBdEiIOPqsSuvVx", "WXm", "", "m", {"--check-hash-based-pycs"}};
constexpr Interpreter kShell = {
    "abefhiklmnprtuvxBCEHPT", "oO", "", "", {"--rcfile", "--init-file"}};
constexpr Interpreter kPerl = {"acnpsStTuUwWX", "I", "0CdDFilmMVx", "", {}};
constexpr Interpreter kRscript = {"", "", "", "", {}};
constexpr Interpreter kJulia = {
    "iqh",
    "ptCJL",
    "Og",
    "",
    {"--procs", "--threads", "--cpu-target", "--sysimage", "--load", "--machine-file", "--home"}};

const Interpreter* InterpreterOf(std::string_view program) {
  const auto versioned = [&](std::string_view name) {
    return program.starts_with(name) &&
           program.find_first_not_of("0123456789.", name.size()) == std::string_view::npos;
  };
  if (versioned("python") || versioned("pypy")) return &kPython;
  if (IsOneOf(program, {"bash", "sh", "dash", "ksh", "zsh"})) return &kShell;
  if (versioned("perl")) return &kPerl;
  if (program == "Rscript") return &kRscript;
  if (versioned("julia")) return &kJulia;
  return nullptr;
}

bool Has(std::string_view letters, char c) { return letters.find(c) != std::string_view::npos; }

// What an option is: how many words follow it that belong to it, or that it names what runs, or
// that nobody knows.
struct Option {
  enum Kind { kKnown, kNames, kUnknown } kind = kKnown;
  size_t more = 0;
  std::string_view named;  // of kNames, if it is in the same word
};

Option ReadLetters(const Interpreter& interpreter, std::string_view letters) {
  for (size_t i = 0; i < letters.size(); ++i) {
    const std::string_view rest = letters.substr(i + 1);
    const char c = letters[i];
    if (Has(interpreter.module, c)) return {Option::kNames, rest.empty() ? 1u : 0u, rest};
    if (Has(interpreter.valued, c)) return {Option::kKnown, rest.empty() ? 1u : 0u, {}};
    if (Has(interpreter.attached, c)) return {};
    if (!Has(interpreter.flags, c)) return {Option::kUnknown, 0, {}};
  }
  return {};
}

Option ReadOption(const Interpreter& interpreter, std::string_view word) {
  if (!word.starts_with("--")) return ReadLetters(interpreter, word.substr(1));
  // Those with a program as text.
  if (IsOneOf(word.substr(0, word.find('=')), {"--eval", "--print", "--command"})) {
    return {Option::kUnknown, 0, {}};
  }
  const auto& all = interpreter.long_valued;
  return {Option::kKnown, std::find(all.begin(), all.end(), word) == all.end() ? 0u : 1u, {}};
}

std::string ScriptOf(const Interpreter& interpreter, Words words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const bool plus = &interpreter == &kShell && word.starts_with('+');  // bash +o posix
    if (word == "-" || word == "+") return "";                           // the script is read
    if (word == "--") return i + 1 < words.size() ? std::string(BaseName(words[i + 1])) : "";
    if (!word.starts_with('-') && !plus) return std::string(BaseName(word));
    const Option option = ReadOption(interpreter, word);
    if (option.kind == Option::kUnknown) return "";
    if (option.kind == Option::kNames) {
      if (!option.named.empty()) return std::string(option.named);
      return i + 1 < words.size() ? std::string(words[i + 1]) : "";
    }
    i += option.more;
  }
  return "";
}

// `java -jar solver.jar`, and of `java -cp lib org.lab.Main` the class.
std::string JavaProgram(Words words) {
  bool jar = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!word.starts_with('-')) return std::string(jar ? BaseName(word) : word);
    if (word == "-jar") {
      jar = true;
    } else if (IsOneOf(word, {"-m", "--module"})) {
      return i + 1 < words.size() ? std::string(words[i + 1]) : "";
    } else if (IsOneOf(word,
                       {"-cp", "-classpath", "--class-path", "-p", "--module-path",
                        "--upgrade-module-path", "--add-modules", "--add-opens", "--add-exports",
                        "--add-reads", "--limit-modules", "--patch-module"})) {
      ++i;
    }
  }
  return "";
}

}  // namespace

std::string ScriptOf(std::string_view command) {
  const std::vector<std::string_view> words = WordsOf(command);
  if (words.size() < 2) return "";
  const std::string_view program = BaseName(words.front());
  const Words rest = Words(words).subspan(1);
  if (program == "java") return JavaProgram(rest);
  const Interpreter* interpreter = InterpreterOf(program);
  return interpreter == nullptr ? "" : ScriptOf(*interpreter, rest);
}

std::string StepTitle(std::string_view name, std::string_view command) {
  const std::string_view first = command.substr(0, command.find(' '));
  if (name.empty() || name == first || BaseName(name) == BaseName(first)) {
    const std::string script = ScriptOf(command);
    if (!script.empty()) return script;
  }
  return std::string(name);
}

}  // namespace sonde
