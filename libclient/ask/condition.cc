#include "libclient/ask/condition.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string_view>

#include "core/text/names.h"

namespace sonde::client {
namespace {

constexpr const char* kAggregators[] = {"sum", "avg", "min", "max", "count", "p5",
                                        "p50", "p75", "p90", "p95", "p99",   "p999"};

struct Comparison {
  const char* text;
  int compare;
};
// The longer ones first.
constexpr Comparison kComparisons[] = {
    {">=", SONDE_GREATER_EQUAL}, {"<=", SONDE_LESS_EQUAL}, {"==", SONDE_EQUAL},
    {"!=", SONDE_NOT_EQUAL},     {">", SONDE_GREATER},     {"<", SONDE_LESS},
};

struct Unit {
  const char* text;
  double seconds;
};
constexpr Unit kUnits[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }
bool IsWordChar(char c) {
  return names::IsLetter(c) || names::IsDigit(c) || c == ':' || c == '.' || c == '-';
}

// Reads a condition from left to right, in the copy that the result keeps: words are ended by zeros
// written over what follows them, once that has been looked at.
class Parser {
 public:
  Parser(ParsedCondition* parsed, char* why, size_t size)
      : out_(*parsed), at_(parsed->text), why_(why), why_size_(size) {}

  bool Run() {
    sonde_question_t& question = out_.condition.of;
    question.metric = Word();
    if (question.metric == nullptr || !names::IsMetricName(question.metric)) {
      return Fail("a metric's name");
    }
    if (next_ == '{' && !Tags()) return false;
    if (!Options()) return false;
    if (!Compare()) return false;
    if (!Duration()) return false;
    question.filters = out_.filters;
    return true;
  }

 private:
  bool Fail(const char* expected) {
    const size_t offset = static_cast<size_t>(at_ - out_.text);
    snprintf(why_, why_size_,
             "condition: expected %s at character %zu; a condition is METRIC[{tag=value,...}] "
             "[AGGREGATOR] [rate] [by KEY,...] COMPARISON NUMBER [for TIME], such as 'residual max "
             "> 10 for 3s'",
             expected, offset + 1);
    return false;
  }

  // `next_` is the character at at_, which may have been overwritten by the end of a word.
  void Move(size_t count) {
    at_ += count;
    next_ = *at_;
  }
  void SkipBlanks() {
    while (IsBlank(next_)) Move(1);
  }
  bool Take(char c) {
    if (next_ != c) return false;
    Move(1);
    return true;
  }
  // Letters, digits and :.-; nullptr if there are none here.
  const char* Word() {
    SkipBlanks();
    char* const start = at_;
    while (IsWordChar(next_)) Move(1);
    if (at_ == start) return nullptr;
    *at_ = '\0';
    return start;
  }
  // Whether the text goes on with this word; if so, takes the word.
  bool TakeWord(std::string_view word) {
    SkipBlanks();
    if (next_ != word[0] || strncmp(at_ + 1, word.data() + 1, word.size() - 1) != 0) return false;
    if (next_ != '\0' && IsWordChar(at_[word.size()])) return false;
    Move(word.size());
    return true;
  }

  sonde_filter_t* AddFilter() {
    size_t& count = out_.condition.of.filter_count;
    return count < ParsedCondition::kMaxFilters ? &out_.filters[count++] : nullptr;
  }

  bool Tags() {
    Move(1);
    do {
      const char* const key = Word();
      if (key == nullptr || !names::IsTagKey(key)) return Fail("a tag's name");
      SkipBlanks();
      const bool leaves_out = Take('!');
      if (!Take('=')) return Fail("= or != after a tag's name");
      char* const value = at_;
      while (next_ != ',' && next_ != '}' && next_ != '\0') Move(1);
      if (next_ == '\0') return Fail("} after the tags");
      if (value == at_) return Fail("a tag's value");
      *at_ = '\0';
      const bool pattern = strchr(value, '*') != nullptr;
      if (pattern && leaves_out) return Fail("a value without * after !=");
      sonde_filter_t* const filter = AddFilter();
      if (filter == nullptr) return Fail("at most 16 tags");
      *filter = {pattern      ? "wildcard"
                 : leaves_out ? "not_literal_or"
                              : "literal_or",
                 key, value, 0};
    } while (Take(','));
    if (!Take('}')) return Fail("} after the tags");
    return true;
  }

  bool Options() {
    sonde_question_t& question = out_.condition.of;
    for (const char* aggregator : kAggregators) {
      if (question.aggregator == nullptr && TakeWord(aggregator)) question.aggregator = aggregator;
    }
    if (TakeWord("rate")) question.flags |= SONDE_RATE;
    if (!TakeWord("by")) return true;
    do {
      const char* const key = Word();
      if (key == nullptr || !names::IsTagKey(key)) return Fail("a tag's name after by");
      sonde_filter_t* const filter = AddFilter();
      if (filter == nullptr) return Fail("at most 16 tags");
      *filter = {"wildcard", key, "*", 1};
      SkipBlanks();
    } while (Take(','));
    return true;
  }

  bool Compare() {
    SkipBlanks();
    for (const Comparison& c : kComparisons) {
      const std::string_view text = c.text;
      if (next_ != text[0] || (text.size() == 2 && at_[1] != text[1])) continue;
      Move(text.size());
      out_.condition.compare = c.compare;
      SkipBlanks();
      return Number(&out_.condition.bound) ? true : Fail("a number after the comparison");
    }
    return Fail("a comparison (> >= < <= == !=)");
  }

  bool Number(double* number) {
    char* end = at_;
    // The application may have set a locale that writes numbers with a comma.
    const locale_t plain = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
    if (plain == nullptr) return false;
    *number = next_ == '\0' ? 0 : strtod_l(at_, &end, plain);
    freelocale(plain);
    if (end == at_ || !isfinite(*number)) return false;
    Move(static_cast<size_t>(end - at_));
    return true;
  }

  bool Duration() {
    if (TakeWord("for")) {
      SkipBlanks();
      double number = 0;
      if (!Number(&number) || number < 0) return Fail("a time after for");
      const Unit* found = nullptr;
      for (const Unit& unit : kUnits) {
        if (found == nullptr && TakeWord(unit.text)) found = &unit;
      }
      if (found == nullptr) return Fail("a unit of time: ms, s, m or h");
      out_.condition.for_seconds = number * found->seconds;
    }
    SkipBlanks();
    return next_ == '\0' ? true : Fail("the end, or 'for TIME',");
  }

  ParsedCondition& out_;
  char* at_;
  char* why_;
  size_t why_size_;
  char next_ = *at_;
};

bool Compares(int compare, double value, double bound) {
  switch (compare) {
    case SONDE_GREATER:
      return value > bound;
    case SONDE_GREATER_EQUAL:
      return value >= bound;
    case SONDE_LESS:
      return value < bound;
    case SONDE_LESS_EQUAL:
      return value <= bound;
    case SONDE_EQUAL:
      return value == bound;
    default:
      return value != bound;
  }
}

// FNV-1a.
uint64_t Mix(uint64_t hash, const char* text) {
  for (; *text != '\0'; ++text) {
    hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3;
  }
  return (hash ^ 0xff) * 0x100000001b3;
}

uint64_t MixTag(uint64_t hash, const sonde_series_t& series, const char* key) {
  const char* const value = sonde_series_tag(&series, key);
  return Mix(Mix(hash, key), value == nullptr ? "" : value);
}

}  // namespace

bool ParseCondition(const char* text, ParsedCondition* parsed, char* why, size_t size) {
  memset(static_cast<void*>(parsed), 0, sizeof(*parsed));
  const size_t length = text == nullptr ? 0 : strnlen(text, ParsedCondition::kMaxText);
  if (length >= ParsedCondition::kMaxText) {
    snprintf(why, size, "condition: expected at most %zu characters",
             ParsedCondition::kMaxText - 1);
    return false;
  }
  if (length != 0) memcpy(parsed->text, text, length);
  return Parser(parsed, why, size).Run();
}

Change Advance(const sonde_condition_t& condition, GroupState& state, int64_t time, double value) {
  if (isnan(value) || time <= state.last) return Change::kNone;
  state.last = time;
  if (!Compares(condition.compare, value, condition.bound)) {
    state.holds = false;
    if (!state.told) return Change::kNone;
    state.told = false;
    return Change::kEnds;
  }
  if (!state.holds) state.since = time;
  state.holds = true;
  const double held = static_cast<double>(time - state.since) * 1e-9;
  if (state.told || held < condition.for_seconds) return Change::kNone;
  state.told = true;
  return Change::kBegins;
}

uint64_t GroupOf(const sonde_question_t& question, const sonde_series_t& series) {
  uint64_t hash = 0;
  for (size_t i = 0; i < question.filter_count; ++i) {
    if (question.filters[i].group_by != 0) hash = MixTag(hash, series, question.filters[i].key);
  }
  if ((question.flags & SONDE_BY_HOST) != 0) hash = MixTag(hash, series, "host");
  if ((question.flags & SONDE_BY_TASK) != 0) hash = MixTag(hash, series, "task");
  return hash;
}

}  // namespace sonde::client
