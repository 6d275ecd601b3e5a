#include "daemon/collect/counters/event_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "daemon/collect/counters/vocabulary.h"
#include "daemon/collect/counters/words.h"
#include "daemon/collect/read/parse.h"
#include "launcher/launch.h"

namespace sonde::collect {
namespace {

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 64 && text[0] >= 'a' && text[0] <= 'z' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

class Reader {
 public:
  // Empty if the line is good, else what was expected.
  std::string Line(std::string_view keyword, std::string_view rest) {
    if (keyword == "name") {
      set_.name = rest;
    } else if (keyword == "processor") {
      return Processor(rest);
    } else if (keyword == "counters") {
      if (!ParseWhole<uint32_t>(rest)) return "a number behind `counters`";
    } else if (keyword == "group") {
      if (!IsName(rest)) return "a name in small letters behind `group`";
      set_.groups.push_back({std::string(rest), {}});
    } else if (keyword == "event") {
      return Event(rest);
    } else if (keyword == "formula") {
      return Binding(rest);
    } else if (keyword != "source") {
      return "name, processor, counters, source, group, event or formula";
    }
    return {};
  }
  EventSet Take() { return std::move(set_); }

 private:
  std::string Processor(std::string_view rest) {
    EventSet::Processors& p = set_.processors.emplace_back();
    p.vendor = TakeUntil(rest, ' ');
    const std::optional<uint32_t> family = ParseWhole<uint32_t>(TakeUntil(rest, ' '));
    if (!family) return "`processor VENDOR FAMILY MODEL...`";
    p.family = *family;
    while (!(rest = TrimLine(rest)).empty()) {
      std::string_view range = TakeUntil(rest, ' ');
      const std::optional<uint32_t> first = ParseWhole<uint32_t>(TakeUntil(range, '-'));
      const std::optional<uint32_t> last = range.empty() ? first : ParseWhole<uint32_t>(range);
      if (!first || !last || *last < *first) return "models as 0x55 or 0x10-0x1f";
      p.models.emplace_back(*first, *last);
    }
    return p.models.empty() ? "at least one model" : "";
  }

  std::string Event(std::string_view rest) {
    if (set_.groups.empty()) return "`group NAME` before the first event";
    if (++events_ > launch::kMaxEvents) {
      return fmt::format("no more events: {} are the most", launch::kMaxEvents);
    }
    EventSet::Event event;
    event.name = TakeUntil(rest, '=');
    if (!IsName(event.name)) return "`event NAME = SPEC`, NAME in small letters";
    if (!names_.insert(event.name).second) return "each event once";
    while (!(rest = TrimLine(rest)).empty()) event.specs.emplace_back(TakeUntil(rest, '|'));
    if (event.specs.empty()) return "an event of libpfm4 behind '='";
    set_.groups.back().events.push_back(std::move(event));
    return {};
  }

  std::string Binding(std::string_view rest) {
    const std::string_view metric = TakeUntil(rest, '=');
    if (FindDerived(metric) == nullptr) return "one of the metrics in docs/metrics.md";
    Result<Formula> formula = Formula::Parse(TrimLine(rest));
    if (!formula.ok()) return std::string(formula.status().message());
    for (const std::string& name : formula->names()) {
      if (name != "task_clock" && name != "seconds" && !names_.contains(name)) {
        return fmt::format("an event instead of `{}`, which is none of those above", name);
      }
    }
    set_.formulas.push_back({std::string(metric), *std::move(formula)});
    return {};
  }

  EventSet set_;
  std::unordered_set<std::string> names_;
  size_t events_ = 0;
};

}  // namespace

ProcessorId ParseProcessor(std::string_view cpuinfo) {
  ProcessorId id;
  for (Cursor text(cpuinfo); !text.AtEnd();) {
    std::string_view value = text.Line();
    if (value.empty() && !id.vendor.empty()) break;  // the end of the first one
    const std::string_view key = TakeUntil(value, ':');
    value = TrimLine(value);
    if (key == "vendor_id") id.vendor = value;
    if (key == "cpu family") id.family = ParseWhole<uint32_t>(value).value_or(0);
    if (key == "model") id.model = ParseWhole<uint32_t>(value).value_or(0);
    if (key == "CPU implementer") id = {"arm", ParseWhole<uint32_t>(value).value_or(0), id.model};
    if (key == "CPU part") id.model = ParseWhole<uint32_t>(value).value_or(0);
  }
  return id;
}

bool EventSet::IsFor(const ProcessorId& id) const {
  return std::any_of(processors.begin(), processors.end(), [&](const Processors& p) {
    return p.vendor == id.vendor && p.family == id.family &&
           std::any_of(p.models.begin(), p.models.end(), [&](const auto& range) {
             return id.model >= range.first && id.model <= range.second;
           });
  });
}

Result<EventSet> ParseEventSet(std::string_view text, std::string_view file) {
  Reader reader;
  int number = 0;
  for (Cursor lines(text); !lines.AtEnd();) {
    ++number;
    std::string_view rest = lines.Line();
    rest = TrimLine(rest.substr(0, rest.find('#')));
    if (rest.empty()) continue;
    const std::string_view keyword = TakeUntil(rest, ' ');
    const std::string expected = reader.Line(keyword, TrimLine(rest));
    if (expected.empty()) continue;
    return Status(Code::kInvalid, fmt::format("{}:{}: expected {}", file, number, expected));
  }
  return reader.Take();
}

}  // namespace sonde::collect
