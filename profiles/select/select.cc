#include "profiles/select/select.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/text/ascii.h"
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
  bool OnNode(const std::string& key, const std::string& host) const;
  // Whether the search finds the profile with this entry in the index by time.
  bool Found(std::string_view by_time, std::string_view profile) const;

  leveldb::DB& db_;
  const Selection& selection_;
  SelectedList& list_;
  const std::string from_;  // in the index by time
  const std::string to_;
  bool check_node_ = false;
  // The words of the search, with the profiles that ran on a host of that name. None: the index of
  // hosts cannot tell.
  struct Word {
    std::string text;  // as it was written: hosts are looked up so
    std::string lower;
    std::optional<Suffixes> on_node;
  };
  std::vector<Word> words_;
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

bool Search::OnNode(const std::string& key, const std::string& host) const {
  const StoredCard stored = IndexedFrom(db_, key);
  return std::any_of(stored.job.nodes.begin(), stored.job.nodes.end(),
                     [&](const NodeInfo& node) { return node.host == host; });
}

bool Search::Found(std::string_view by_time, std::string_view profile) const {
  std::string id;
  return std::all_of(words_.begin(), words_.end(), [&](const Word& word) {
    if (HasWord(card_, word.lower)) return true;
    if (id.empty()) {
      const auto known = keys::DescribeKey(profile);
      if (known) id = Lower(known->id.ToString());
    }
    if (id.find(word.lower) != std::string::npos) return true;
    if (!word.on_node) return OnNode(std::string(profile), word.text);
    return std::binary_search(word.on_node->begin(), word.on_node->end(),
                              by_time.substr(keys::kByTime.size()));
  });
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
  if (Matches(card_, selection_) &&
      (!check_node_ || OnNode(std::string(profile), selection_.node)) && Found(by_time, profile)) {
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
  for (const std::string& word : selection_.search) words_.push_back({word, Lower(word), {}});
  check_node_ = !selection_.node.empty();
  for (const std::string& key : DescribedProfiles(db_)) {
    const auto job = keys::DescribeKey(key);
    if (!job || job->start < selection_.since || job->start > selection_.until) continue;
    Take(keys::ByTime(*job), "");
  }
}

Status Search::Run() {
  const bool indexed = IsIndexed(db_);
  for (const std::string& text : selection_.search) {
    Word word{text, Lower(text), {}};
    if (indexed) {
      word.on_node = WithTerm(keys::Term::kHost, CardText(text, keys::kMaxTerm),
                              std::numeric_limits<size_t>::max());
    }
    words_.push_back(std::move(word));
  }
  if (!indexed) {
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
