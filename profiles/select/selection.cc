#include "profiles/select/selection.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/text/ascii.h"
#include "profiles/model/summary.h"

namespace sonde {
namespace {

constexpr std::string Selection::*kTextFilters[] = {&Selection::command, &Selection::name,
                                                    &Selection::node,    &Selection::user,
                                                    &Selection::account, &Selection::partition};

// Whether `text` has `lower`, a text in small letters.
bool HasIgnoringCase(std::string_view text, std::string_view lower) {
  return std::search(text.begin(), text.end(), lower.begin(), lower.end(),
                     [](char a, char b) { return Lower(a) == b; }) != text.end();
}

bool HasTag(const Card& card, const std::pair<std::string, std::optional<std::string>>& wanted) {
  return std::any_of(card.tags.begin(), card.tags.end(), [&](const auto& tag) {
    return tag.first == wanted.first && (!wanted.second || tag.second == *wanted.second);
  });
}

}  // namespace

bool HasWord(const Card& card, std::string_view word) {
  if (HasIgnoringCase(card.name, word) || HasIgnoringCase(card.user, word) ||
      HasIgnoringCase(card.command, word)) {
    return true;
  }
  if (!card.array_job.empty() &&
      HasIgnoringCase(std::string(card.array_job) + "_" + std::string(card.array_task), word)) {
    return true;
  }
  return std::any_of(card.tags.begin(), card.tags.end(), [&](const auto& tag) {
    return HasIgnoringCase(std::string(tag.first) + "=" + std::string(tag.second), word);
  });
}

bool HasFilters(const Selection& s) {
  return s.since > 0 || s.until < std::numeric_limits<Nanos>::max() || s.lasting_to > 0 ||
         s.state || s.level || !s.search.empty() || !s.tags.empty() ||
         std::any_of(std::begin(kTextFilters), std::end(kTextFilters),
                     [&](const auto filter) { return !(s.*filter).empty(); });
}

bool Finds(const Card& card, const JobStep& id, const Selection& selection,
           const std::function<bool(const std::string& word)>& on_node) {
  const std::string step = Lower(id.ToString());
  return std::all_of(
      selection.search.begin(), selection.search.end(), [&](const std::string& text) {
        const std::string word = Lower(text);
        return HasWord(card, word) || step.find(word) != std::string::npos || on_node(text);
      });
}

bool Matches(const Card& card, const Selection& selection) {
  const auto has = [](std::string_view text, const std::string& part) {
    return part.empty() || text.find(part) != std::string_view::npos;
  };
  const auto is = [](std::string_view text, const std::string& wanted) {
    return wanted.empty() || text == wanted;
  };
  return (!selection.state || card.state == *selection.state) &&
         (!selection.level || card.level == *selection.level) &&
         has(card.command, selection.command) && has(card.name, selection.name) &&
         is(card.user, selection.user) && is(card.account, selection.account) &&
         is(card.partition, selection.partition) &&
         std::all_of(selection.tags.begin(), selection.tags.end(),
                     [&](const auto& tag) { return HasTag(card, tag); });
}

bool Lasts(const Card& card, const Selection& selection) {
  return card.end == 0 || card.end >= selection.lasting_to;
}

double SortValue(const Card& card, Nanos start, SortBy sort, Nanos now) {
  const auto either = [&](CardNumber a, CardNumber b) {
    return std::isnan(card.Number(a)) ? card.Number(b) : card.Number(a);
  };
  switch (sort) {
    case SortBy::kStart:
      return 0;
    case SortBy::kDuration:
      return static_cast<double>((card.end != 0 ? card.end : now) - start);
    case SortBy::kCpu:
      return card.Number(CardNumber::kCpu);
    case SortBy::kMemory:
      return card.Number(CardNumber::kMemoryPeak);
    case SortBy::kEnergy:
      return card.Number(CardNumber::kEnergy);
    case SortBy::kRead:
      return either(CardNumber::kTaskRead, CardNumber::kDiskRead);
    case SortBy::kWritten:
      return either(CardNumber::kTaskWritten, CardNumber::kDiskWritten);
    case SortBy::kReceived:
      return card.Number(CardNumber::kNetworkReceived);
    case SortBy::kSent:
      return card.Number(CardNumber::kNetworkSent);
    case SortBy::kSize:
      return static_cast<double>(card.size);
    case SortBy::kNodes:
      return card.nodes;
    case SortBy::kTasks:
      return card.tasks;
    case SortBy::kUse:
      return SummaryOfCard(card, start, now).cpu_of_tasks;
    case SortBy::kState:
      return -static_cast<double>(card.state);
  }
  return 0;
}

bool SelectedList::Before(const Ranked& a, const Ranked& b) const {
  const bool known_a = !std::isnan(a.value), known_b = !std::isnan(b.value);
  if (known_a != known_b) return known_a;
  if (known_a && a.value != b.value) return (a.value > b.value) != selection_.reverse;
  if (a.selected.start != b.selected.start) {
    return (a.selected.start > b.selected.start) !=
           (selection_.reverse && selection_.sort == SortBy::kStart);
  }
  return a.selected.key < b.selected.key;
}

void SelectedList::Add(std::string_view key, std::string_view bytes, const Card& card,
                       Nanos start) {
  if (!skipped_.empty() && skipped_.contains(key)) return;
  ++found_;
  const size_t most = this->most();
  const auto before = [&](const Ranked& a, const Ranked& b) { return Before(a, b); };
  Ranked next{SortValue(card, start, selection_.sort, now_), {std::string(key), {}, start}};
  if (heap_.size() >= most) {
    if (heap_.empty() || !Before(next, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), before);
    heap_.pop_back();
  }
  next.selected.card = bytes;
  heap_.push_back(std::move(next));
  std::push_heap(heap_.begin(), heap_.end(), before);
}

bool SelectedList::Full(Nanos start) const {
  return !count_ && selection_.sort == SortBy::kStart && !selection_.reverse &&
         heap_.size() >= most() && !heap_.empty() && start < heap_.front().selected.start;
}

std::vector<Selected> SelectedList::Take() {
  std::sort(heap_.begin(), heap_.end(),
            [&](const Ranked& a, const Ranked& b) { return Before(a, b); });
  std::vector<Selected> out;
  out.reserve(heap_.size());
  for (Ranked& ranked : heap_) out.push_back(std::move(ranked.selected));
  return out;
}

}  // namespace sonde
