// The parser of alarm rules: series/alarm/rule.h has the grammar.
#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "core/text/ascii.h"
#include "core/text/names.h"
#include "series/alarm/rule.h"

namespace sonde::alarms {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsNameChar(char c) {
  return names::IsLetter(c) || names::IsDigit(c) || c == ':' || c == '.' || c == '-';
}

// Reads from left to right; the first failure stays.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  const Status& status() const { return status_; }
  bool AtEnd() {
    SkipBlanks();
    return at_ == text_.size();
  }
  bool Fail(std::string_view expected) {
    if (!status_.ok()) return false;
    const std::string_view rest = text_.substr(at_, 24);
    status_ = Status(Code::kInvalid,
                     rest.empty() ? fmt::format("expected {} at the end", expected)
                                  : fmt::format("expected {} at character {}, where it says '{}'",
                                                expected, at_ + 1, rest));
    return false;
  }

  bool ReadRule(Rule& rule);
  bool ReadSelector(std::string& metric, Tags& tags);
  bool ReadSelectorOfRule(std::string& metric, Tags& tags);

 private:
  void SkipBlanks() {
    while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
  }
  bool Take(std::string_view token) {
    SkipBlanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  std::string_view Peek() {
    SkipBlanks();
    size_t end = at_;
    while (end < text_.size() && IsNameChar(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  bool TakeWord(std::string_view word) {
    if (Peek() != word) return false;
    at_ += word.size();
    return true;
  }

  bool ReadMetric(std::string& metric);
  bool ReadTags(Tags& tags);
  bool ReadQuoted(std::string& text);
  bool ReadNumber(double& number);
  bool ReadTime(Nanos& time);
  bool ReadWho(Condition& c);
  bool ReadTest(Condition& c);
  bool ReadCondition(Condition& c);
  bool ReadOption(Rule& rule);
  bool MakeOfOneNode(Condition& c);
  bool CheckCondition(const Condition& c);
  bool CheckRule(const Rule& rule);

  std::string_view text_;
  size_t at_ = 0;
  Status status_;
};

bool Parser::ReadMetric(std::string& metric) {
  const std::string_view word = Peek();
  if (!names::IsMetricName(word)) return Fail("the name of a metric");
  metric = word;
  at_ += word.size();
  return true;
}

bool Parser::ReadQuoted(std::string& text) {
  if (!Take("\"")) return Fail("a text in double quotes");
  const size_t start = at_;
  for (text.clear(); at_ < text_.size() && text_[at_] != '"'; ++at_) {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    text += text_[at_];
  }
  if (Take("\"")) return true;
  at_ = start;
  return Fail("a closing double quote for what begins");
}

bool Parser::ReadTags(Tags& tags) {
  do {
    SkipBlanks();
    if (tags.empty() && Take("}")) return true;
    const size_t start = at_;
    while (at_ < text_.size() && (names::IsLetter(text_[at_]) || names::IsDigit(text_[at_]))) ++at_;
    const std::string key(text_.substr(start, at_ - start));
    if (!names::IsTagKey(key)) return Fail("the name of a tag");
    if (!Take("=")) return Fail("'=' after a tag's name");
    SkipBlanks();
    std::string value;
    if (at_ < text_.size() && text_[at_] == '"') {
      if (!ReadQuoted(value)) return false;
    } else {
      const size_t end = std::min(text_.find_first_of(",}", at_), text_.size());
      value = TrimLine(text_.substr(at_, end - at_));
      at_ = end;
    }
    if (!names::IsTagValue(value)) return Fail("a tag's value before");
    if (tags.Find(key) != nullptr)
      return Fail("each tag once, but '" + key + "' comes again before");
    if (tags.pairs().size() == kMaxTags) return Fail(fmt::format("at most {} tags", kMaxTags));
    tags.Set(key, value);
  } while (Take(","));
  return Take("}") || Fail("'}' after the tags");
}

bool Parser::ReadSelector(std::string& metric, Tags& tags) {
  if (!ReadMetric(metric)) return false;
  return !Take("{") || ReadTags(tags);
}

bool Parser::ReadSelectorOfRule(std::string& metric, Tags& tags) {
  if (!ReadSelector(metric, tags)) return false;
  if (tags.Find("task") == nullptr) return true;
  return Fail(
      "no tag task: a rule is about all tasks, and says by 'any' that one of them is enough,");
}

bool Parser::ReadNumber(double& number) {
  SkipBlanks();
  const char* const begin = text_.data() + at_ + (text_.substr(at_).starts_with('+') ? 1 : 0);
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || !std::isfinite(number)) return Fail("a number");
  const size_t start = at_;
  at_ = static_cast<size_t>(stop - text_.data());
  const size_t behind = at_;
  if (Take("%")) {
    number /= 100;
  } else if (at_ = behind; at_ < text_.size()) {
    constexpr std::string_view kUnits = "KMGT";
    const size_t power = kUnits.find(text_[at_]);
    if (power != std::string_view::npos) {
      number *= std::pow(1024.0, static_cast<double>(power + 1));
      ++at_;
    }
  }
  if (std::isfinite(number) && (at_ == text_.size() || !IsNameChar(text_[at_]))) return true;
  at_ = start;
  return Fail("a number, perhaps with K, M, G, T or % behind it,");
}

bool Parser::ReadTime(Nanos& time) {
  const std::string_view word = Peek();
  const Result<Nanos> read = ParseDuration(word);
  if (!read.ok() || *read > kMaxTime) return Fail("a time such as 500ms, 30s or 5m, up to 7d,");
  time = *read;
  at_ += word.size();
  return true;
}

bool Parser::ReadWho(Condition& c) {
  struct Word {
    std::string_view text;
    Who who;
  };
  constexpr Word kWords[] = {{"sum", Who::kSum}, {"avg", Who::kAvg},     {"min", Who::kMin},
                             {"max", Who::kMax}, {"count", Who::kCount}, {"any", Who::kAny},
                             {"all", Who::kAll}};
  for (const Word& word : kWords) {
    if (!TakeWord(word.text)) continue;
    c.who = word.who;
    c.per_node = TakeWord(c.who == Who::kAll ? "nodes" : "node");
    if (c.per_node && (c.who == Who::kSum || c.who == Who::kAvg || c.who == Who::kCount)) {
      return Fail("any, all, min or max before the word 'node', not an aggregate of them,");
    }
    break;
  }
  return true;
}

bool Parser::ReadTest(Condition& c) {
  struct Sign {
    std::string_view text;
    Test test;
  };
  constexpr Sign kSigns[] = {{">=", Test::kGreaterEqual}, {"<=", Test::kLessEqual},
                             {"==", Test::kEqual},        {"!=", Test::kNotEqual},
                             {">", Test::kGreater},       {"<", Test::kLess},
                             {"=", Test::kEqual}};
  if (TakeWord("absent")) return c.test = Test::kAbsent, true;
  const bool lags = TakeWord("lags");
  if (lags || TakeWord("leads")) {
    c.test = lags ? Test::kLags : Test::kLeads;
    if (!ReadNumber(c.bound)) return false;
    return !TakeWord("by") || ReadNumber(c.by);
  }
  for (const Sign& sign : kSigns) {
    if (!Take(sign.text)) continue;
    c.test = sign.test;
    if (!ReadNumber(c.bound)) return false;
    return !TakeWord("in") || ReadTime(c.in);
  }
  return Fail("a comparison (> >= < <= = !=), absent, lags or leads");
}

// A condition on one node's number: that node puts its own values together and sends what comes
// out, which is then the most of one.
bool Parser::MakeOfOneNode(Condition& c) {
  const bool plain = c.who == Who::kStep || (c.who == Who::kMax && c.per_node);
  if (!plain || c.test == Test::kLags || c.test == Test::kLeads) {
    return Fail("no aggregate of nodes where the tag host names one, but");
  }
  c.who = Who::kMax;
  c.per_node = true;
  return true;
}

bool Parser::CheckCondition(const Condition& c) {
  const bool deviates = c.test == Test::kLags || c.test == Test::kLeads;
  if (c.who == Who::kAny && c.test == Test::kEqual) {
    return Fail("another comparison: whether any of them is equal is not known, only 'all ... =',");
  }
  if (c.who == Who::kAll && c.test == Test::kNotEqual) {
    return Fail("another comparison: whether all of them differ is not known, only 'any ... !=',");
  }
  if (c.test == Test::kAbsent &&
      ((c.who != Who::kStep && !IsOfOneNode(c)) || c.rate || !c.over.empty())) {
    return Fail("no aggregate, rate or '/' with 'absent', but");
  }
  if (deviates && (c.who != Who::kStep && !(c.who == Who::kAny && c.per_node))) {
    return Fail("no aggregate but 'any node' with 'lags' and 'leads', but");
  }
  if (deviates && (c.bound < 0 || c.by < 0)) return Fail("no negative number of deviations, but");
  if (c.who == Who::kCount && (c.rate || !c.over.empty())) {
    return Fail("no rate and no '/' with 'count', but");
  }
  const std::optional<Derived> need = NeedOf(c);
  if (need && DerivedName(*need).size() > kMaxNameLength) {
    return Fail(fmt::format("shorter names of metrics, {} bytes together,", kMaxNameLength - 21));
  }
  return true;
}

bool Parser::ReadCondition(Condition& c) {
  if (!ReadSelectorOfRule(c.metric, c.tags)) return false;
  if (Take("/") && !ReadMetric(c.over)) return false;
  if (!ReadWho(c)) return false;
  c.rate = TakeWord("rate");
  return ReadTest(c) && (!IsOfOneNode(c) || MakeOfOneNode(c)) && CheckCondition(c);
}

bool Parser::ReadOption(Rule& rule) {
  if (TakeWord("for")) return ReadTime(rule.hold);
  if (TakeWord("calm")) return ReadTime(rule.calm.emplace());
  if (TakeWord("clear")) return ReadNumber(rule.clear.emplace());
  for (const Severity severity : {Severity::kInfo, Severity::kWarning, Severity::kCritical}) {
    if (TakeWord(ToString(severity))) return rule.severity = severity, true;
  }
  if (!TakeWord("message")) {
    return Fail("and, for, clear, calm, info, warning, critical or message");
  }
  if (!ReadQuoted(rule.message)) return false;
  if (!rule.message.empty() && rule.message.size() <= kMaxMessage &&
      names::IsPlainText(rule.message)) {
    return true;
  }
  return Fail(fmt::format("a message of 1 to {} bytes of plain text before", kMaxMessage));
}

bool Parser::CheckRule(const Rule& rule) {
  const Condition& first = rule.conditions.front();
  if (first.test == Test::kAbsent && rule.hold == 0) return Fail("'for TIME' with 'absent'");
  if (!rule.clear) return true;
  if (first.test != Test::kGreater && first.test != Test::kGreaterEqual &&
      first.test != Test::kLess && first.test != Test::kLessEqual) {
    return Fail("'clear' with > >= < or <= only, but");
  }
  if (Compares(first.test, *rule.clear, first.bound) && *rule.clear != first.bound) {
    return Fail("the number after 'clear' where the condition does not hold, but");
  }
  return true;
}

bool Parser::ReadRule(Rule& rule) {
  do {
    if (rule.conditions.size() == kMaxConditions) {
      return Fail(fmt::format("at most {} conditions, but", kMaxConditions));
    }
    if (!ReadCondition(rule.conditions.emplace_back())) return false;
  } while (TakeWord("and"));
  while (!AtEnd()) {
    if (!ReadOption(rule)) return false;
  }
  return CheckRule(rule);
}

}  // namespace

Status CheckRuleName(std::string_view name) {
  if (name.empty() || name.size() > kMaxRuleName || TrimLine(name) != name ||
      !names::IsPlainText(name) || name.find_first_of(":=\"#") != std::string_view::npos) {
    return {Code::kInvalid,
            fmt::format("'{}' is no name of a rule; expected 1 to {} bytes of text without ':', "
                        "'=', '\"' and '#'",
                        name.substr(0, kMaxRuleName), kMaxRuleName)};
  }
  return {};
}

Result<Rule> ParseRule(std::string_view name, std::string_view text) {
  SONDE_RETURN_IF_ERROR(CheckRuleName(name));
  Rule rule;
  rule.name = name;
  if (text.size() > kMaxRuleText) {
    return Status(Code::kInvalid,
                  fmt::format("alarm {}: the rule is longer than {} bytes", name, kMaxRuleText));
  }
  Parser parser(text);
  if (!parser.ReadRule(rule)) return parser.status().Within(fmt::format("alarm {}", name));
  return rule;
}

Status ParseSelector(std::string_view text, std::string& metric, Tags& tags) {
  Parser parser(text);
  if (parser.ReadSelector(metric, tags) && !parser.AtEnd()) parser.Fail("nothing more");
  return parser.status().Within("metric");
}

Result<RuleLine> ParseRuleLine(std::string_view name, std::string_view text) {
  SONDE_RETURN_IF_ERROR(CheckRuleName(name));
  RuleLine line{std::string(name), std::nullopt};
  if (TrimLine(text) == "off") return line;
  Result<Rule> rule = ParseRule(name, text);
  if (!rule.ok()) return rule.status();
  line.rule = *std::move(rule);
  return line;
}

Result<std::vector<RuleLine>> ParseRules(std::string_view text, std::string_view file) {
  std::vector<RuleLine> lines;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t eol = text.find('\n');
    const std::string_view line = TrimLine(text.substr(0, eol));
    text.remove_prefix(eol == std::string_view::npos ? text.size() : eol + 1);
    if (line.empty() || line.front() == '#') continue;
    const auto at = [&] { return fmt::format("{}:{}", file, number); };
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      return Status(Code::kInvalid, "expected NAME: RULE").Within(at());
    }
    Result<RuleLine> read = ParseRuleLine(TrimLine(line.substr(0, colon)), line.substr(colon + 1));
    if (!read.ok()) return read.status().Within(at());
    if (lines.size() == kMaxRules) {
      return Status(Code::kInvalid, fmt::format("more than {} rules", kMaxRules)).Within(at());
    }
    lines.push_back(*std::move(read));
  }
  return lines;
}

}  // namespace sonde::alarms
