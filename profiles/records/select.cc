#include "profiles/records/select.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "profiles/disk/damage.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"

namespace sonde {
namespace {

// With more entries than this, reading all cards is cheaper than looking them up.
constexpr size_t kMaxLookedUp = 4096;
// The most terms of an index that are compared with a text.
constexpr size_t kMaxTerms = 2048;

bool HasTag(const Card& card, const std::pair<std::string, std::optional<std::string>>& wanted) {
  return std::any_of(card.tags.begin(), card.tags.end(), [&](const auto& tag) {
    return tag.first == wanted.first && (!wanted.second || tag.second == *wanted.second);
  });
}

// Suffixes of index entries: the start's complement and the profile's key, so that their order is
// that of the index by time.
using Suffixes = std::vector<std::string>;

// One search of a database.
class Search {
 public:
  Search(leveldb::DB& db, const Selection& selection, SelectedList& list)
      : db_(db),
        selection_(selection),
        list_(list),
        from_(keys::ByTimeFrom(selection.until)),
        to_(keys::ByTimeFrom(std::max(selection.since, Earliest()))) {}

  Status Run();
  void TakeEach();

 private:
  // The earliest begin of a step that lasted long enough.
  Nanos Earliest() const;
  // Entries with the term, at most `most`; false if there are more.
  bool AddTerm(leveldb::Iterator& it, keys::Term kind, std::string_view term, size_t most,
               Suffixes& out) const;
  // The entries of all terms that have the text; none if there are too many terms or entries.
  std::optional<Suffixes> WithText(keys::Term kind, std::string_view text) const;
  std::optional<Suffixes> WithTerm(keys::Term kind, std::string_view term, size_t most) const;
  // The shortest list that an index gives; none if no index gives one.
  std::optional<Suffixes> Candidates() const;
  Status LookUp(const Suffixes& suffixes);
  Status ReadAll();
  // Whether more profiles can come.
  bool Take(std::string_view key, std::string_view value);
  bool OnNode(const std::string& key) const;

  leveldb::DB& db_;
  const Selection& selection_;
  SelectedList& list_;
  const std::string from_;  // in the index by time
  const std::string to_;
  bool check_node_ = false;
  Card card_;
};

Nanos Search::Earliest() const {
  if (selection_.lasting_to == 0) return 0;
  const Result<ProfileTotals> totals = ReadTotals(db_);
  if (!totals.ok() || !totals->longest) return 0;
  return std::max<Nanos>(0, selection_.lasting_to - *totals->longest);
}

bool Search::AddTerm(leveldb::Iterator& it, keys::Term kind, std::string_view term, size_t most,
                     Suffixes& out) const {
  const std::string prefix = keys::ByTermPrefix(kind, term);
  // After the prefix comes what comes after "t" in the index by time.
  const std::string_view end = std::string_view(to_).substr(keys::kByTime.size());
  for (it.Seek(prefix + from_.substr(keys::kByTime.size()));
       it.Valid() && it.key().starts_with(prefix); it.Next()) {
    const std::string_view suffix = View(it.key()).substr(prefix.size());
    if (suffix.substr(0, end.size()) > end) break;
    if (out.size() == most) return false;
    out.emplace_back(suffix);
  }
  return true;
}

std::optional<Suffixes> Search::WithTerm(keys::Term kind, std::string_view term,
                                         size_t most) const {
  const std::unique_ptr<leveldb::Iterator> it(db_.NewIterator(CheckedRead()));
  Suffixes out;
  if (!AddTerm(*it, kind, term, most, out) || !it->status().ok()) return std::nullopt;
  return out;
}

std::optional<Suffixes> Search::WithText(keys::Term kind, std::string_view text) const {
  const std::unique_ptr<leveldb::Iterator> terms(db_.NewIterator(CheckedRead()));
  const std::unique_ptr<leveldb::Iterator> entries(db_.NewIterator(CheckedRead()));
  const std::string prefix = keys::ByTermPrefix(kind);
  Suffixes out;
  std::string at = prefix;
  for (size_t count = 0;; ++count) {
    terms->Seek(at);
    if (!terms->Valid() || !terms->key().starts_with(prefix)) break;
    const auto entry = keys::ParseTerm(View(terms->key()));
    if (!entry || count == kMaxTerms) return std::nullopt;
    // If a term was cut, its rest may have the text; the card tells.
    const bool maybe = entry->term.size() + 3 >= keys::kMaxTerm;
    if ((maybe || entry->term.find(text) != std::string_view::npos) &&
        !AddTerm(*entries, kind, entry->term, kMaxLookedUp, out)) {
      return std::nullopt;
    }
    // Past all entries of the term.
    at = keys::ByTermPrefix(kind, entry->term);
    at.back() = '\1';
  }
  if (!terms->status().ok() || !entries->status().ok()) return std::nullopt;
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<Suffixes> Search::Candidates() const {
  using keys::Term;
  std::optional<Suffixes> best;
  const auto offer = [&](std::optional<Suffixes> found) {
    if (found && (!best || found->size() < best->size())) best = std::move(found);
  };
  // Profiles of unknown states stand in the index under their own words.
  if (selection_.state && selection_.state != EndState::kUnknown) {
    offer(WithTerm(Term::kState, ToString(*selection_.state), kMaxLookedUp));
  }
  for (const auto& [name, value] : selection_.tags) {
    if (value)
      offer(WithTerm(Term::kTag, CardText(name + "=" + *value, keys::kMaxTerm), kMaxLookedUp));
  }
  if (!selection_.name.empty()) offer(WithText(Term::kName, selection_.name));
  if (!selection_.command.empty()) offer(WithText(Term::kCommand, selection_.command));
  return best;
}

bool Search::OnNode(const std::string& key) const {
  const StoredCard stored = IndexedFrom(db_, key);
  return std::any_of(stored.job.nodes.begin(), stored.job.nodes.end(),
                     [&](const NodeInfo& node) { return node.host == selection_.node; });
}

bool Search::Take(std::string_view by_time, std::string_view value) {
  const std::string_view profile = keys::ProfileOfTimeIndex(by_time);
  const Nanos start = keys::StartOfTimeIndex(by_time);
  std::string made;
  if (!DecodeCard(value, card_).ok()) {
    if (!keys::DescribeKey(profile)) return true;
    made = IndexedFrom(db_, std::string(profile)).card;
    if (!DecodeCard(made, card_).ok()) return true;
    value = made;
  }
  if (!Lasts(card_, selection_)) return true;
  if (Matches(card_, selection_) && (!check_node_ || OnNode(std::string(profile)))) {
    list_.Add(profile, value, card_, start);
  }
  return !list_.Full(start);
}

Status Search::LookUp(const Suffixes& suffixes) {
  std::string value;
  for (const std::string& suffix : suffixes) {
    const std::string key = keys::ByTimeOfSuffix(suffix);
    const leveldb::Status read = db_.Get(CheckedRead(), key, &value);
    if (read.IsNotFound()) continue;  // `sonde archive verify` reports it
    if (!read.ok()) return FromLevelDb(read, "read the archive's index by time");
    if (!Take(key, value)) break;
  }
  return {};
}

Status Search::ReadAll() {
  const leveldb::ReadOptions options = CheckedScan();
  const std::unique_ptr<leveldb::Iterator> it(db_.NewIterator(options));
  for (it->Seek(from_); it->Valid() && it->key().starts_with(AsSlice(keys::kByTime)); it->Next()) {
    if (View(it->key()).substr(0, to_.size()) > to_) break;
    if (!Take(View(it->key()), View(it->value()))) break;
  }
  return FromLevelDb(it->status(), "read the archive's index by time");
}

// Every profile by its own records.
void Search::TakeEach() {
  check_node_ = !selection_.node.empty();
  for (const std::string& key : DescribedProfiles(db_)) {
    const auto job = keys::DescribeKey(key);
    if (!job || job->start < selection_.since || job->start > selection_.until) continue;
    Take(keys::ByTime(*job), "");
  }
}

Status Search::Run() {
  if (!IsIndexed(db_)) {
    check_node_ = !selection_.node.empty();
    return ReadAll();
  }
  if (!selection_.node.empty()) {
    // Cards do not name the nodes, so this index is the one to look at.
    const auto on_node = WithTerm(keys::Term::kHost, CardText(selection_.node, keys::kMaxTerm),
                                  std::numeric_limits<size_t>::max());
    if (on_node) return LookUp(*on_node);
    check_node_ = true;
    return ReadAll();
  }
  const auto candidates = Candidates();
  return candidates ? LookUp(*candidates) : ReadAll();
}

}  // namespace

bool Matches(const Card& card, const Selection& selection) {
  const auto has = [](std::string_view text, const std::string& part) {
    return part.empty() || text.find(part) != std::string_view::npos;
  };
  const auto is = [](std::string_view text, const std::string& wanted) {
    return wanted.empty() || text == wanted;
  };
  return (!selection.state || card.state == *selection.state) &&
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
  const auto before = [&](const Ranked& a, const Ranked& b) { return Before(a, b); };
  Ranked next{SortValue(card, start, selection_.sort, now_), {std::string(key), {}, start}};
  if (heap_.size() >= selection_.limit) {
    if (heap_.empty() || !Before(next, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), before);
    heap_.pop_back();
  }
  next.selected.card = bytes;
  heap_.push_back(std::move(next));
  std::push_heap(heap_.begin(), heap_.end(), before);
}

bool SelectedList::Full(Nanos start) const {
  return selection_.sort == SortBy::kStart && !selection_.reverse &&
         heap_.size() >= selection_.limit && !heap_.empty() && start < heap_.front().selected.start;
}

std::vector<Selected> SelectedList::Take() {
  std::sort(heap_.begin(), heap_.end(),
            [&](const Ranked& a, const Ranked& b) { return Before(a, b); });
  std::vector<Selected> out;
  out.reserve(heap_.size());
  for (Ranked& ranked : heap_) out.push_back(std::move(ranked.selected));
  return out;
}

Status SelectFrom(leveldb::DB& db, const Selection& selection, SelectedList& list, Damage& damage) {
  const Status status = Search(db, selection, list).Run();
  if (status.code() != Code::kCorrupt) return status;
  damage.Add("some of the indexes", status);
  SelectOneByOne(db, selection, list);
  return {};
}

void SelectOneByOne(leveldb::DB& db, const Selection& selection, SelectedList& list) {
  list.Clear();
  Search(db, selection, list).TakeEach();
}

}  // namespace sonde
