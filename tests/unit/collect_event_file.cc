#include "tests/unit/collect_event_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/unit/paths.h"

namespace sonde::event_files {
namespace {

std::string Trim(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}
std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(Trim(part));
  return parts;
}

std::optional<int> Number(const std::string& text) {
  const bool hex = text.starts_with("0x");
  const char* end = text.data() + text.size();
  int value = 0;
  const auto [at, error] = std::from_chars(text.data() + (hex ? 2 : 0), end, value, hex ? 16 : 10);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

bool ParseProcessor(const std::string& text, EventSet& set) {
  std::istringstream words(text);
  Processor p;
  words >> p.vendor >> p.family;
  for (std::string word; words >> word;) {
    const size_t dash = word.find('-');
    const auto from = Number(word.substr(0, dash));
    const auto to = dash == std::string::npos ? from : Number(word.substr(dash + 1));
    if (!from || !to || *from > *to) return false;
    p.models.emplace_back(*from, *to);
  }
  if (!Number(p.family) || p.models.empty()) return false;
  set.processors.push_back(p);
  return true;
}

bool ParseAssignment(const std::string& text, std::string& left, std::string& right) {
  const size_t equals = text.find(" = ");
  if (equals == std::string::npos) return false;
  left = Trim(text.substr(0, equals));
  right = Trim(text.substr(equals + 3));
  return !left.empty() && !right.empty();
}

bool ParseLine(const std::string& key, const std::string& rest, size_t line, EventSet& set) {
  if (rest.empty()) return false;
  if (key == "name") return std::exchange(set.name, rest).empty();
  if (key == "source") return set.sources.push_back(rest), true;
  if (key == "processor") return ParseProcessor(rest, set);
  if (key == "group") return set.groups.push_back({rest, {}}), true;
  if (key == "counters") {
    const auto count = Number(rest);
    set.counters = static_cast<size_t>(count.value_or(0));
    return set.counters > 0;
  }
  std::string left;
  std::string right;
  if (!ParseAssignment(rest, left, right)) return false;
  if (key == "formula") {
    set.formulas.push_back({left, right, line});
    return true;
  }
  if (key != "event" || set.groups.empty()) return false;
  set.groups.back().second.push_back({left, Split(right, '|')});
  return set.line_of.emplace(left, line).second;
}

EventSet Parse(const std::filesystem::path& path) {
  EventSet set;
  set.file = path.stem();
  std::ifstream in(path);
  size_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    const std::string line = Trim(text.substr(0, text.find('#')));
    if (line.empty()) continue;
    const size_t blank = line.find(' ');
    const std::string rest = blank == std::string::npos ? "" : Trim(line.substr(blank));
    if (!ParseLine(line.substr(0, blank), rest, number, set)) {
      set.errors.push_back(std::to_string(number) + ": " + text);
    }
  }
  return set;
}

// sum = product {+|- product}, product = operand {*|/ operand}, operand = number, name or (sum).
class Evaluator {
 public:
  Evaluator(const std::string& text, const Values& values) : values_(values) {
    for (const char c : text) {
      const bool word = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
      if (c != ' ' && (!word || !in_word_)) tokens_.emplace_back();
      if (c != ' ') tokens_.back() += c;
      in_word_ = word;
    }
  }
  std::optional<double> Result() {
    const double value = Sum();
    return failed_ || next_ != tokens_.size() ? std::nullopt : std::optional(value);
  }

 private:
  bool Take(const char* token) {
    if (next_ == tokens_.size() || tokens_[next_] != token) return false;
    ++next_;
    return true;
  }
  double Sum() {
    double value = Product();
    while (true) {
      if (Take("+")) {
        value += Product();
      } else if (Take("-")) {
        value -= Product();
      } else {
        return value;
      }
    }
  }
  double Product() {
    double value = Operand();
    while (true) {
      if (Take("*")) {
        value *= Operand();
      } else if (Take("/")) {
        value /= Operand();
      } else {
        return value;
      }
    }
  }
  double Operand() {
    if (Take("(")) {
      const double value = Sum();
      failed_ = failed_ || !Take(")");
      return value;
    }
    const std::string token = next_ < tokens_.size() ? tokens_[next_++] : "";
    if (const auto it = values_.find(token); it != values_.end()) return it->second;
    double number = 0;
    const char* end = token.data() + token.size();
    const auto [at, error] = std::from_chars(token.data(), end, number);
    failed_ = failed_ || error != std::errc() || at != end;
    return number;
  }

  const Values& values_;
  std::vector<std::string> tokens_;
  bool in_word_ = false;
  size_t next_ = 0;
  bool failed_ = false;
};

}  // namespace

const std::vector<EventSet>& Sets() {
  static const std::vector<EventSet> sets = [] {
    std::vector<EventSet> all;
    for (const auto& entry : std::filesystem::directory_iterator(kEventsDir)) {
      // software.events is of no processor.
      if (entry.path().extension() != ".events" || entry.path().stem() == "software") continue;
      all.push_back(Parse(entry.path()));
    }
    return all;
  }();
  return sets;
}
const EventSet& Set(const std::string& file) {
  const auto it = std::ranges::find(Sets(), file, &EventSet::file);
  if (it == Sets().end()) throw std::runtime_error("there is no " + file + ".events");
  return *it;
}

std::optional<uint64_t> Raw(const std::string& spec) {
  const char* end = spec.data() + spec.size();
  uint64_t config = 0;
  if (spec.size() < 2 || spec[0] != 'r') return std::nullopt;
  const auto [at, error] = std::from_chars(spec.data() + 1, end, config, 16);
  if (error != std::errc() || at != end) return std::nullopt;
  return config;
}

bool Generic(const std::string& spec) {
  static const std::set<std::string> names = {
      "cycles",        "instructions",           "branches",
      "branch-misses", "cache-references",       "cache-misses",
      "ref-cycles",    "stalled-cycles-backend", "stalled-cycles-frontend",
  };
  return names.contains(spec);
}

bool Offcore(const std::string& spec) {
  return spec.starts_with("OFFCORE_RESPONSE_") || spec.starts_with("OCR:");
}

std::optional<double> Evaluate(const std::string& expression, const Values& values) {
  return Evaluator(expression, values).Result();
}

}  // namespace sonde::event_files
