#include "web/prometheus/exposition_merge.h"

#include <map>

namespace sonde::web {
namespace {

constexpr std::string_view kEnd = "# EOF";

struct Family {
  std::string_view type;
  std::string_view head;  // the metric's lines before its samples
  std::vector<std::string_view> samples;
};

std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(line.size() + (line.size() < text.size() ? 1 : 0));
  return line;
}

std::string_view TakeWord(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size() + (word.size() < line.size() ? 1 : 0));
  return word;
}

// The lines about a metric, and then its samples.
class Merging {
 public:
  bool Add(std::string_view text) {
    bool ended = false;
    while (!text.empty() && !ended) {
      if (text.starts_with(kEnd)) {
        ended = TakeLine(text) == kEnd && text.empty();
        if (!ended) return false;
      } else if (!AddFamily(text)) {
        return false;
      }
    }
    if (texts_++ == 0) ended_ = ended;
    return ended == ended_;
  }

  std::string Text() const {
    std::string out;
    for (const auto& [name, family] : families_) {
      out += family.head;
      for (const std::string_view samples : family.samples) out += samples;
    }
    if (ended_) out.append(kEnd).append("\n");
    return out;
  }

 private:
  bool AddFamily(std::string_view& text) {
    const std::string_view from = text;
    std::string_view name, type;
    while (text.starts_with("# ") && !text.starts_with(kEnd)) {
      std::string_view line = text.substr(2, text.find('\n') - 2);
      const std::string_view word = TakeWord(line);
      const std::string_view of = TakeWord(line);
      // These lines are the next metric's: this one has no samples.
      if (!name.empty() && of != name) break;
      name = of;
      if (word == "TYPE") type = line;
      TakeLine(text);
    }
    if (type.empty()) return false;
    const std::string_view head = from.substr(0, from.size() - text.size());
    const std::string_view first = text;
    while (!text.empty() && text.front() != '#') TakeLine(text);
    const auto [at, is_new] = families_.try_emplace(name);
    Family& family = at->second;
    if (is_new) {
      family.type = type;
      family.head = head;
    }
    family.samples.push_back(first.substr(0, first.size() - text.size()));
    return family.type == type;
  }

  std::map<std::string_view, Family> families_;
  size_t texts_ = 0;
  bool ended_ = false;
};

}  // namespace

std::optional<std::string> MergeExpositions(const std::vector<std::string_view>& texts) {
  Merging merging;
  for (const std::string_view text : texts) {
    if (!text.ends_with('\n') || !merging.Add(text)) return std::nullopt;
  }
  return merging.Text();
}

}  // namespace sonde::web
