#include "profiles/compare/many_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/time.h"
#include "insight/robust.h"
#include "profiles/compare/weight.h"

namespace sonde {
namespace {

constexpr double kApartByChance = 0.001;
// A selection's runs that still run take places in the list; one reads a bit further for them.
constexpr size_t kRunningAtMost = 500;

Status TooFew(size_t found) {
  return {Code::kInvalid,
          fmt::format("{} runs that have ended are asked for: a comparison needs two or more",
                      found == 0 ? "no" : std::to_string(found))};
}

Status TooMany(uint64_t found) {
  return {Code::kInvalid,
          fmt::format("{} runs are asked for: at most {} can be compared. Set filters, such as "
                      "since or a tag, that fewer pass",
                      found, kMostManyRuns)};
}

// Descriptions of large steps are mostly their nodes.
void Add(ProfileEntry entry, Entries& entries) {
  entry.job.nodes = {};
  entries.push_back(std::move(entry));
}

Result<FoundRuns> FindNamed(const Archive& archive, const std::vector<std::string>& names) {
  if (names.size() > kMostManyRuns) return TooMany(names.size());
  FoundRuns found;
  std::set<std::string> known;
  for (const std::string& name : names) {
    auto entry = FindRun(archive, name);
    if (!entry.ok()) return entry.status();
    if (known.insert(entry->key).second) Add(*std::move(entry), found.entries);
  }
  return found;
}

Result<FoundRuns> FindSelected(const Archive& archive, Selection selection) {
  selection.limit = kMostManyRuns + kRunningAtMost;
  selection.offset = 0;
  const auto page = archive.SelectPage(selection, Clock::System().Now());
  if (!page.ok()) return page.status();
  FoundRuns found;
  for (const ListedProfile& one : page->profiles) found.running += one.running ? 1 : 0;
  if (page->found - found.running > kMostManyRuns) return TooMany(page->found - found.running);
  for (const ListedProfile& one : page->profiles) {
    if (one.running) continue;
    auto entry = archive.Entry(one.key);
    // It may have been deleted since the list was made.
    if (entry.status().code() == Code::kNotFound) continue;
    if (!entry.ok()) return entry.status();
    Add(*std::move(entry), found.entries);
  }
  return found;
}

// Gathers the rows while runs are added.
class Gathering {
 public:
  Status Add(const ComparedRun& run) {
    sizes_.push_back(SizeOf({run}));
    for (RunNumber& number : NumbersOf(run)) {
      if (std::isnan(number.value)) continue;
      if (++numbers_ > kMostNumbers) {
        return {Code::kLimit, fmt::format("the runs have more than {} numbers: compare fewer runs",
                                          kMostNumbers)};
      }
      const auto key = std::pair(number.kind.section, number.kind.name);
      const auto [at, is_new] = places_.try_emplace(key, rows_.size());
      if (is_new) {
        rows_.emplace_back().kind = std::move(number.kind);
        shown_.push_back(false);
      }
      SpreadRow& row = rows_[at->second];
      row.runs.push_back(static_cast<uint32_t>(sizes_.size() - 1));
      row.values.push_back(number.value);
      shown_[at->second] = shown_[at->second] || !number.told_above;
    }
    return {};
  }

  std::vector<SpreadRow> Take() {
    std::vector<SpreadRow> rows;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!shown_[i]) continue;
      Finish(rows_[i]);
      rows.push_back(std::move(rows_[i]));
    }
    // What a number of the summary sums up would say the same again.
    std::set<std::string> summed;
    for (const SpreadRow& row : rows) {
      if (row.kind.section <= CompareSection::kIo) summed.insert(row.kind.metric);
    }
    for (SpreadRow& row : rows) {
      const bool again = row.kind.section == CompareSection::kOther &&
                         row.standing < Standing::kSlight && summed.contains(row.kind.metric);
      if (again) row.standing = Standing::kSlight;
    }
    std::stable_sort(rows.begin(), rows.end(), Before);
    return rows;
  }

 private:
  void Finish(SpreadRow& row) const {
    std::vector<double> ascending = row.values;
    std::sort(ascending.begin(), ascending.end());
    row.min = ascending.front();
    row.p10 = QuantileOf(ascending, 0.1);
    row.median = QuantileOf(ascending, 0.5);
    row.p90 = QuantileOf(ascending, 0.9);
    row.max = ascending.back();
    row.apart = Apart(row);
    const double size = std::fmax(std::abs(row.min), std::abs(row.max));
    const bool differs = row.max - row.min > kNoiseRule * size;
    if (differs) row.weight = Weight(row);
    row.standing = row.kind.pseudo              ? Standing::kPseudo
                   : !differs                   ? Standing::kSame
                   : std::isnan(row.weight)     ? Standing::kUnweighed
                   : row.weight >= kLeastWeight ? Standing::kWeighty
                                                : Standing::kSlight;
  }
  static std::vector<uint32_t> Apart(const SpreadRow& row) {
    const insight::Centre centre = insight::CentreOf(row.values);
    const double limit = insight::OutlierLimit(centre.count, kApartByChance) * centre.deviation;
    const double least = kNoiseRule * std::abs(centre.median);
    std::vector<std::pair<double, uint32_t>> apart;
    for (size_t i = 0; i < row.values.size(); ++i) {
      const double far = std::abs(row.values[i] - centre.median);
      if (far > least && far > limit) apart.emplace_back(-far, row.runs[i]);
    }
    std::sort(apart.begin(), apart.end());
    std::vector<uint32_t> runs;
    runs.reserve(apart.size());
    for (const auto& [far, run] : apart) runs.push_back(run);
    return runs;
  }
  double Weight(const SpreadRow& row) const {
    const auto [least, most] = std::minmax_element(row.values.begin(), row.values.end());
    const auto size = [&](auto at) -> const StepSize& {
      return sizes_[row.runs[static_cast<size_t>(at - row.values.begin())]];
    };
    const NumberKind& kind = row.kind;
    return WeightOf({kind.section, kind.metric, kind.unit, kind.counts, kind.reduction}, row.min,
                    row.max, size(least), size(most));
  }
  static double Range(const SpreadRow& row) {
    return (row.max - row.min) / std::fmax(std::abs(row.min), std::abs(row.max));
  }
  static bool Before(const SpreadRow& a, const SpreadRow& b) {
    if (a.standing != b.standing) return a.standing < b.standing;
    if (a.standing == Standing::kSame || a.standing == Standing::kPseudo) {
      return a.kind.section < b.kind.section;
    }
    const bool known_a = !std::isnan(a.weight), known_b = !std::isnan(b.weight);
    if (known_a != known_b) return known_a;
    if (known_a && a.weight != b.weight) return a.weight > b.weight;
    return !known_a && Range(a) > Range(b);
  }

  std::vector<StepSize> sizes_;  // of each run
  size_t numbers_ = 0;
  std::map<std::pair<CompareSection, std::string>, size_t> places_;
  std::vector<SpreadRow> rows_;
  std::vector<bool> shown_;  // of each row: in some run no other number says the same
};

}  // namespace

double QuantileOf(const std::vector<double>& ascending, double share) {
  if (ascending.empty()) return kMissing;
  const double at = share * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, ascending.size() - 1);
  const double part = at - static_cast<double>(below);
  return part == 0 ? ascending[below] : ascending[below] * (1 - part) + ascending[above] * part;
}

Result<FoundRuns> FindManyRuns(const Archive& archive, const ManyRunsQuestion& question) {
  auto found = question.names.empty() ? FindSelected(archive, question.selection)
                                      : FindNamed(archive, question.names);
  if (found.ok() && found->entries.size() < 2) return TooFew(found->entries.size());
  return found;
}

Result<ManyRuns> LoadManyRuns(const Archive& archive, FoundRuns found) {
  Gathering gathering;
  for (const ProfileEntry& entry : found.entries) {
    const auto run = LoadRun(archive, entry);
    if (!run.ok()) return run.status().Within(entry.job.id.ToString());
    SONDE_RETURN_IF_ERROR(gathering.Add(*run));
  }
  return ManyRuns{std::move(found), gathering.Take()};
}

}  // namespace sonde
