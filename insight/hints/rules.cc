#include "insight/hints/rules.h"

#include <fmt/core.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "insight/hints/facts.h"
#include "profiles/disk/archive_dir.h"

namespace sonde::insight {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr size_t kMostRules = 1000;  // of a file

std::string Place(std::string_view file, const toml::source_region& source) {
  return fmt::format("{}:{}", file, source.begin.line);
}

// Reads one rule. The first failure counts.
class OneRule {
 public:
  OneRule(std::string_view file, std::string_view name, const toml::table& table)
      : file_(file), table_(table), name_(name) {}

  Result<HintRule> Read() {
    static const std::set<std::string_view> kKeys = {"when", "worth", "says", "why", "change",
                                                     "let",  "unit",  "kind", "off"};
    for (const auto& [key, node] : table_) {
      if (!kKeys.contains(key.str())) {
        return Wrong(node, fmt::format("there is no '{}' in a hint; expected when, worth, says, "
                                       "why, change, let, unit, kind or off",
                                       key.str()));
      }
    }
    const toml::node* const off = table_.get("off");
    if (off != nullptr && !off->is_boolean()) return Wrong(*off, "expected off = true or false");
    HintRule rule;
    rule.name = name_;
    rule.off = off != nullptr && off->value_or(false);
    if (rule.off) return rule;
    SONDE_RETURN_IF_ERROR(ReadKind(rule));
    SONDE_RETURN_IF_ERROR(ReadUnits(rule));
    SONDE_RETURN_IF_ERROR(ReadLets(rule));
    SONDE_RETURN_IF_ERROR(ReadFormula("when", rule.when));
    SONDE_RETURN_IF_ERROR(ReadFormula("worth", rule.worth));
    SONDE_RETURN_IF_ERROR(ReadMessage("says", rule.says));
    SONDE_RETURN_IF_ERROR(ReadMessage("why", rule.why));
    SONDE_RETURN_IF_ERROR(ReadMessage("change", rule.change));
    return rule;
  }

 private:
  Status Wrong(const toml::node& node, std::string_view what) const {
    return {Code::kInvalid,
            fmt::format("{}: hint {}: {}", Place(file_, node.source()), name_, what)};
  }
  Status ReadKind(HintRule& rule) const {
    const toml::node* const node = table_.get("kind");
    if (node == nullptr) return {};
    const auto text = TextOf("kind", *node);
    if (!text.ok()) return text.status();
    if (*text != "limit") return Wrong(*node, "expected kind = \"limit\", or no kind");
    rule.kind = HintKind::kLimit;
    return {};
  }
  // A text under a key of the rule.
  Result<std::string> Text(std::string_view key) const {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return Wrong(table_, fmt::format("'{}' is missing", key));
    return TextOf(key, *node);
  }
  Result<std::string> TextOf(std::string_view key, const toml::node& node) const {
    const auto text = node.value<std::string>();
    if (!text || !node.is_string()) {
      return Wrong(node, fmt::format("'{}' has to be a text in quotes", key));
    }
    return *text;
  }
  Status CheckNames(const toml::node& node, const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      const FactInfo* const fact = FindFact(name);
      if (lets_.contains(name) || (fact != nullptr && fact->unit != "text")) continue;
      const std::string_view why = fact != nullptr ? "is a text, and no number" : "is no fact";
      return Wrong(node, fmt::format("'{}' {}; 'sonde hints --facts' lists them", name, why));
    }
    return {};
  }
  Result<Formula> FormulaOf(std::string_view key, const toml::node& node) const {
    const auto text = TextOf(key, node);
    if (!text.ok()) return text.status();
    auto formula = Formula::Parse(*text, Formula::Kind::kCondition);
    if (!formula.ok()) return Wrong(node, formula.status().message());
    SONDE_RETURN_IF_ERROR(CheckNames(node, formula->names()));
    return formula;
  }
  Status ReadFormula(std::string_view key, Formula& into) const {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return Wrong(table_, fmt::format("'{}' is missing", key));
    auto formula = FormulaOf(key, *node);
    if (!formula.ok()) return formula.status();
    into = *std::move(formula);
    return {};
  }
  // Numbers of its own, in the order of the file: tables have that of their keys.
  Status ReadLets(HintRule& rule) {
    const toml::node* const node = table_.get("let");
    if (node == nullptr) return {};
    const toml::table* const lets = node->as_table();
    if (lets == nullptr) return Wrong(*node, "'let' has to be a table, as in let.needed = \"...\"");
    std::vector<std::pair<std::string, const toml::node*>> sorted;
    for (const auto& [key, value] : *lets) sorted.emplace_back(key.str(), &value);
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second->source().begin < b.second->source().begin;
    });
    for (const auto& [name, value] : sorted) {
      if (FindFact(name) != nullptr) {
        return Wrong(*value, fmt::format("'{}' is a fact already", name));
      }
      auto formula = FormulaOf(name, *value);
      if (!formula.ok()) return formula.status();
      rule.lets.emplace_back(name, *std::move(formula));
      lets_.insert(name);
    }
    for (const auto& [name, unit] : rule.units) {
      if (!lets_.contains(name)) {
        return Wrong(*node, fmt::format("unit.{} has no let.{}", name, name));
      }
    }
    return {};
  }
  Status ReadUnits(HintRule& rule) const {
    const toml::node* const node = table_.get("unit");
    if (node == nullptr) return {};
    const toml::table* const units = node->as_table();
    if (units == nullptr || table_.get("let") == nullptr) {
      return Wrong(*node, "'unit' has to be a table of units for 'let'");
    }
    for (const auto& [key, value] : *units) {
      const auto text = TextOf(key.str(), value);
      if (!text.ok()) return text.status();
      rule.units.emplace(key.str(), *text);
    }
    return {};
  }
  Status ReadMessage(std::string_view key, Message& into) const {
    const auto text = Text(key);
    if (!text.ok()) return text.status();
    auto message = Message::Parse(*text);
    const toml::node& node = *table_.get(key);
    if (!message.ok()) return Wrong(node, message.status().message());
    if (message->empty()) return Wrong(node, fmt::format("'{}' is empty", key));
    for (const Message::Part& part : message->parts()) {
      if (!part.name || lets_.contains(part.text)) continue;
      const FactInfo* const fact = FindFact(part.text);
      if (fact == nullptr) {
        return Wrong(node,
                     fmt::format("'{}' is no fact; 'sonde hints --facts' lists them", part.text));
      }
      if (fact->unit == "text" && !part.form.empty()) {
        return Wrong(node,
                     fmt::format("'{}' is a text and has no form '{}'", part.text, part.form));
      }
    }
    into = *std::move(message);
    return {};
  }

  const std::string_view file_;
  const toml::table& table_;
  const std::string name_;
  std::set<std::string, std::less<>> lets_;
};

Result<std::vector<std::string>> RuleFilesIn(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(directory, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".toml") files.push_back(it->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return Status(Code::kIo, fmt::format("{}: {}", directory, error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

void Replace(std::vector<HintRule> with, std::vector<HintRule>& rules) {
  for (HintRule& rule : with) {
    std::erase_if(rules, [&](const HintRule& one) { return one.name == rule.name; });
    if (!rule.off) rules.push_back(std::move(rule));
  }
}

}  // namespace

Result<std::vector<HintRule>> ParseHintRules(std::string_view toml, std::string_view file) try {
  const toml::table all = toml::parse(toml, file);
  std::vector<HintRule> rules;
  for (const auto& [key, node] : all) {
    const toml::table* const hints = node.as_table();
    if (key.str() != "hint" || hints == nullptr) {
      return Status(Code::kInvalid,
                    fmt::format("{}: expected [hint.NAME], and nothing else; found '{}'",
                                Place(file, node.source()), key.str()));
    }
    for (const auto& [name, one] : *hints) {
      const toml::table* const table = one.as_table();
      if (table == nullptr || rules.size() >= kMostRules) {
        return Status(Code::kInvalid,
                      fmt::format("{}: expected [hint.{}], and {} hints at most",
                                  Place(file, one.source()), name.str(), kMostRules));
      }
      auto rule = OneRule(file, name.str(), *table).Read();
      if (!rule.ok()) return rule.status();
      rules.push_back(*std::move(rule));
    }
  }
  return rules;
} catch (const toml::parse_error& error) {
  return Status(Code::kInvalid,
                fmt::format("{}: {}", Place(file, error.source()), error.description()));
}

Result<std::vector<HintRule>> LoadHintRules(const std::vector<std::string>& directories) {
  auto rules = ParseHintRules(DefaultHintRules(), "the rules that Sonde comes with");
  if (!rules.ok()) return rules;
  for (const std::string& directory : directories) {
    const auto files = RuleFilesIn(directory);
    if (!files.ok()) return files.status();
    for (const std::string& path : *files) {
      const auto text = ReadSmallFile(path, kMostBytes);
      if (!text.ok()) return text.status();
      auto more = ParseHintRules(*text, path);
      if (!more.ok()) return more;
      Replace(*std::move(more), *rules);
    }
  }
  return rules;
}

}  // namespace sonde::insight
