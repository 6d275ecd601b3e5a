#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/text/ascii.h"
#include "series/query/query.h"
#include "series/query/regexp.h"
#include "series/query/steps.h"

namespace sonde {

using query_steps::Alternatives;

namespace {

// A glob whose only special character is '*', any run of bytes.
bool Glob(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;  // the last '*' passed, and where its run ends so far
  size_t run = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      run = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++run;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// One filter, ready to be asked.
class Matcher {
 public:
  static Result<Matcher> Make(const TagFilter& filter) {
    const auto bad = [&](std::string_view why) {
      return Status(Code::kInvalid,
                    fmt::format("filter '{}' of tag '{}': {}", filter.pattern.substr(0, 64),
                                filter.key.substr(0, 64), why));
    };
    const bool not_key = filter.type == TagFilter::Type::kNotKey;
    if (not_key && !filter.pattern.empty()) return bad("not_key takes no pattern");
    if (filter.key.empty() || (filter.pattern.empty() && !not_key)) {
      return bad("a key and a pattern are needed");
    }
    if (filter.key.size() > kMaxNameLength || filter.pattern.size() > kMaxPatternLength) {
      return bad("it is too long");
    }
    Matcher m;
    m.type_ = filter.type;
    m.key_ = filter.key;
    m.pattern_ = m.IgnoresCase() ? Lower(filter.pattern) : filter.pattern;
    switch (filter.type) {
      case TagFilter::Type::kWildcard:
      case TagFilter::Type::kIWildcard:
        if (m.pattern_.find('*') == std::string::npos) return bad("a wildcard needs a '*'");
        break;
      case TagFilter::Type::kNotKey:
        break;
      case TagFilter::Type::kRegexp: {
        Result<Regexp> regexp = Regexp::Compile(m.pattern_);
        if (!regexp.ok()) return bad(regexp.status().message());
        m.regexp_ = *std::move(regexp);
        break;
      }
      default:
        m.literals_ = Alternatives(m.pattern_);
        if (m.literals_.empty()) return bad("more than '|' is needed");
        std::sort(m.literals_.begin(), m.literals_.end());
    }
    return m;
  }

  const std::string& key() const { return key_; }

  bool Matches(const Tags& tags) const {
    const std::string* tag = tags.Find(key_);
    if (type_ == TagFilter::Type::kNotKey) return tag == nullptr;
    if (tag == nullptr) return false;
    const std::string value = IgnoresCase() ? Lower(*tag) : *tag;
    switch (type_) {
      case TagFilter::Type::kWildcard:
      case TagFilter::Type::kIWildcard:
        return Glob(pattern_, value);
      case TagFilter::Type::kRegexp:
        return regexp_->Matches(value);
      case TagFilter::Type::kNotLiteralOr:
      case TagFilter::Type::kNotILiteralOr:
        return !IsLiteral(value);
      default:
        return IsLiteral(value);
    }
  }

 private:
  bool IgnoresCase() const {
    return type_ == TagFilter::Type::kILiteralOr || type_ == TagFilter::Type::kNotILiteralOr ||
           type_ == TagFilter::Type::kIWildcard;
  }
  bool IsLiteral(const std::string& value) const {
    return std::binary_search(literals_.begin(), literals_.end(), value);
  }

  TagFilter::Type type_ = TagFilter::Type::kLiteralOr;
  std::string key_;
  std::string pattern_;
  std::vector<std::string> literals_;  // sorted
  std::optional<Regexp> regexp_;
};

}  // namespace

std::vector<std::string> query_steps::Alternatives(std::string_view pattern) {
  std::vector<std::string> parts;
  while (true) {
    const size_t bar = pattern.find('|');
    if (bar != 0 && !pattern.empty()) parts.emplace_back(pattern.substr(0, bar));
    if (bar == std::string_view::npos) return parts;
    pattern.remove_prefix(bar + 1);
  }
}

struct SeriesFilter::Rep {
  std::string metric;
  std::vector<Matcher> matchers;
  std::set<std::string, std::less<>> keys;
  bool explicit_tags = false;
};

Result<SeriesFilter> SeriesFilter::Make(const QuerySpec& spec) {
  auto rep = std::make_shared<Rep>();
  rep->metric = spec.metric;
  rep->explicit_tags = spec.explicit_tags;
  for (const TagFilter& filter : spec.filters) {
    Result<Matcher> matcher = Matcher::Make(filter);
    if (!matcher.ok()) return matcher.status();
    rep->matchers.push_back(std::move(*matcher));
    if (filter.type != TagFilter::Type::kNotKey) rep->keys.insert(filter.key);
  }
  SeriesFilter filter;
  filter.rep_ = std::move(rep);
  return filter;
}

bool SeriesFilter::Matches(const Series& series) const {
  return Matches(series.metric.name, series.tags);
}

bool SeriesFilter::Matches(std::string_view metric, const Tags& tags) const {
  const Rep& rep = *rep_;
  if (metric != rep.metric) return false;
  // Every filter but not_key needs its key, so equally many keys are the same keys.
  if (rep.explicit_tags && tags.pairs().size() != rep.keys.size()) return false;
  return std::all_of(rep.matchers.begin(), rep.matchers.end(),
                     [&](const Matcher& m) { return m.Matches(tags); });
}

}  // namespace sonde
