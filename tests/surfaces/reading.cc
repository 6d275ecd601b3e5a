#include "tests/surfaces/reading.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace sonde::surfaces {

class Json::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json Whole() {
    Json json = Value();
    Blanks();
    if (at_ != text_.size()) Fail();
    return json;
  }

 private:
  [[noreturn]] void Fail() const {
    throw std::runtime_error("no JSON at " + std::to_string(at_) + " of " +
                             std::string(text_.substr(0, 200)));
  }
  void Blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  char Next() {
    Blanks();
    if (at_ == text_.size()) Fail();
    return text_[at_];
  }
  bool Take(char c) {
    if (Next() != c) return false;
    ++at_;
    return true;
  }
  void Need(char c) {
    if (!Take(c)) Fail();
  }

  Json Value() {
    Json json;
    const char c = Next();
    if (c == '{') {
      ++at_;
      while (!Take('}')) {
        if (!json.members_.empty()) Need(',');
        Need('"');
        std::string name = Text();
        Need(':');
        json.members_[std::move(name)] = Value();
      }
    } else if (c == '[') {
      ++at_;
      while (!Take(']')) {
        if (!json.items_.empty()) Need(',');
        json.items_.push_back(Value());
      }
    } else if (c == '"') {
      ++at_;
      json.text_ = Text();
    } else {
      while (at_ < text_.size() &&
             std::string_view(",]} \n").find(text_[at_]) == std::string::npos) {
        json.text_ += text_[at_++];
      }
    }
    return json;
  }

  // The campaign has no characters beyond these.
  std::string Text() {
    std::string out;
    for (;; ++at_) {
      if (at_ == text_.size()) Fail();
      if (text_[at_] == '"') break;
      if (text_[at_] == '\\') ++at_;
      out += text_[at_];
    }
    ++at_;
    return out;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

Json Json::Parse(std::string_view text) { return Parser(text).Whole(); }

const Json& Json::operator[](const std::string& name) const {
  const auto at = members_.find(name);
  if (at == members_.end()) throw std::runtime_error("no member " + name);
  return at->second;
}

double Json::number() const {
  if (text_ == "NaN" || text_ == "null") return std::nan("");
  char* end = nullptr;
  const double number = std::strtod(text_.c_str(), &end);
  if (end == text_.c_str() || *end != '\0') throw std::runtime_error("no number: " + text_);
  return number;
}

LineTags TagsOf(const Json& object) {
  LineTags tags;
  for (const auto& [key, value] : object.members()) tags[key] = value.text();
  return tags;
}

std::string NameWith(const std::string& metric, const LineTags& tags) {
  std::string name = metric + "{";
  for (const auto& [key, value] : tags) {
    if (name.back() != '{') name += ",";
    name += key + "=\"" + value + "\"";
  }
  return name + "}";
}

namespace {

Nanos NanosOf(const std::string& seconds) {
  const size_t dot = seconds.find('.');
  std::string fraction = dot == std::string::npos ? "" : seconds.substr(dot + 1);
  fraction.resize(9, '0');
  return std::stoll(seconds.substr(0, dot)) * kSecond + std::stoll(fraction);
}

std::string Name(const std::string& text) {
  return text.find('{') == std::string::npos ? text + "{}" : text;
}

}  // namespace

std::map<std::string, double> ReadExposition(std::string_view text) {
  std::map<std::string, double> samples;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t blank = line.rfind(' ');
    const std::string name = Name(line.substr(0, blank));
    const bool is_new = samples.emplace(name, std::strtod(line.c_str() + blank, nullptr)).second;
    if (!is_new) throw std::runtime_error("two samples of " + name);
  }
  return samples;
}

std::map<std::string, std::map<Nanos, double>> ReadOpenMetrics(std::string_view text) {
  std::map<std::string, std::map<Nanos, double>> samples;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t time = line.rfind(' ');
    const size_t value = line.rfind(' ', time - 1);
    const std::string name = Name(line.substr(0, value));
    const bool is_new =
        samples[name]
            .emplace(NanosOf(line.substr(time + 1)), std::strtod(line.c_str() + value, nullptr))
            .second;
    if (!is_new) throw std::runtime_error("two samples of one time of " + name);
  }
  return samples;
}

std::map<std::string, std::map<Nanos, double>> ReadCsv(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string line;
  const auto split = [](const std::string& row) {
    std::vector<std::string> cells(1);
    for (const char c : row) {
      if (c == ',') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    return cells;
  };
  std::getline(lines, line);
  const std::vector<std::string> names = split(line);
  std::map<std::string, std::map<Nanos, double>> columns;
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = split(line);
    for (size_t c = 1; c < cells.size() && c < names.size(); ++c) {
      if (!cells[c].empty()) {
        columns[names[c]][std::stoll(cells[0])] = std::strtod(cells[c].c_str(), nullptr);
      }
    }
  }
  return columns;
}

}  // namespace sonde::surfaces
