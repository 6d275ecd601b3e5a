#include "profiles/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "insight/student.h"
#include "profiles/compare/numbers.h"
#include "profiles/compare/weight.h"

namespace sonde {
namespace {

const double kUnknown = std::nan("");

constexpr size_t kLeastDegrees = 3;

// What all runs say of one number.
struct Asked {
  NumberKind kind;
  std::vector<double> runs;  // NaN: the run has none
  bool shown = false;        // in some run of the groups no other number says the same
};

// The numbers of so many runs, by section.
class Numbers {
 public:
  explicit Numbers(size_t runs) : runs_(runs) {}
  void Add(const ComparedRun& run, bool of_group) {
    for (RunNumber& number : NumbersOf(run)) {
      const auto key = std::pair(number.kind.section, number.kind.name);
      const auto [at, is_new] = places_.try_emplace(key, all_.size());
      if (is_new) all_.push_back({std::move(number.kind), std::vector<double>(runs_, kUnknown)});
      Asked& asked = all_[at->second];
      asked.runs[added_] = number.value;
      asked.shown |= of_group && !number.told_above;
    }
    ++added_;
  }
  std::vector<Asked> Take() {
    std::erase_if(all_, [](const Asked& asked) { return !asked.shown; });
    std::stable_sort(all_.begin(), all_.end(), [](const Asked& a, const Asked& b) {
      return a.kind.section < b.kind.section;
    });
    return std::move(all_);
  }

 private:
  const size_t runs_;
  size_t added_ = 0;
  std::map<std::pair<CompareSection, std::string>, size_t> places_;
  std::vector<Asked> all_;
};

// How much runs vary about the means of their groups.
struct RunSpread {
  double squares = 0;
  size_t degrees = 0;
  void Add(const Band& band) {
    if (band.count < 2) return;
    for (const double value : band.runs) {
      if (!std::isnan(value)) squares += (value - band.mean) * (value - band.mean);
    }
    degrees += band.count - 1;
  }
  double Deviation() const { return std::sqrt(squares / static_cast<double>(degrees)); }
};

// The standard error of a group's number, from the ups and downs within its runs.
double ErrorWithin(const ComparedGroup& group, const Band& band, const std::string& metric) {
  double most = 0;
  for (const ComparedRun& run : group) {
    const auto found = run.variation.find(metric);
    if (found != run.variation.end()) most = std::max(most, found->second);
  }
  return most * std::abs(band.mean);
}

Change ChangeOf(const Band& base, const Band& other, double noise) {
  Change change;
  change.difference = other.mean - base.mean;
  change.noise = noise;
  const bool one_alone = (base.count == 0) != (other.count == 0);
  change.beyond = one_alone || std::abs(change.difference) > noise;
  return change;
}

// By how many times its noise a row differs, at most.
double TimesNoise(const CompareRow& row) {
  double most = 0;
  for (const Change& change : row.changes) {
    most = std::max(most, change.noise > 0 ? std::abs(change.difference) / change.noise
                                           : (change.beyond ? HUGE_VAL : 0));
  }
  return most;
}

Standing StandingOf(const CompareRow& row, bool pseudo) {
  if (pseudo) return Standing::kPseudo;
  if (!row.beyond()) return Standing::kSame;
  if (std::isnan(row.weight)) return Standing::kUnweighed;
  return row.weight >= kLeastWeight ? Standing::kWeighty : Standing::kSlight;
}

bool StandsBefore(const CompareRow& a, const CompareRow& b) {
  if (a.standing != b.standing) return a.standing < b.standing;
  if (a.beyond() != b.beyond()) return a.beyond();
  if (!a.beyond()) return a.section < b.section;
  const bool known_a = !std::isnan(a.weight), known_b = !std::isnan(b.weight);
  if (known_a != known_b) return known_a;
  if (known_a && a.weight != b.weight) return a.weight > b.weight;
  return !known_a && TimesNoise(a) > TimesNoise(b);
}

CompareRow RowOf(Asked asked, const std::vector<ComparedGroup>& groups,
                 const std::vector<StepSize>& sizes) {
  NumberKind& kind = asked.kind;
  CompareRow row;
  RunSpread spread;
  auto next = asked.runs.begin();
  const auto band = [&](size_t runs) {
    const auto first = std::exchange(next, next + static_cast<ptrdiff_t>(runs));
    return BandOf(std::vector<double>(first, next));
  };
  for (const ComparedGroup& group : groups) {
    row.groups.push_back(band(group.size()));
    spread.Add(row.groups.back());
  }
  spread.Add(band(static_cast<size_t>(asked.runs.end() - next)));
  row.basis = spread.degrees >= kLeastDegrees ? NoiseBasis::kRuns : NoiseBasis::kRule;
  const Band& base = row.groups.front();
  for (size_t g = 1; g < groups.size(); ++g) {
    const Band& other = row.groups[g];
    const double size = std::fmax(std::abs(base.mean), std::abs(other.mean));
    double noise = kNoiseRule * size;
    if (row.basis == NoiseBasis::kRuns) {
      const double runs = 1.0 / static_cast<double>(std::max<size_t>(base.count, 1)) +
                          1.0 / static_cast<double>(std::max<size_t>(other.count, 1));
      noise = std::max(kNoiseLeast * size,
                       StudentT(spread.degrees) * spread.Deviation() * std::sqrt(runs));
    } else {
      const double error = std::hypot(ErrorWithin(groups[0], base, kind.metric),
                                      ErrorWithin(groups[g], other, kind.metric));
      noise = std::max(noise, 2 * error);
    }
    row.changes.push_back(ChangeOf(base, other, noise));
    row.weight = std::fmax(
        row.weight, WeightOf({kind.section, kind.metric, kind.unit, kind.counts, kind.reduction},
                             base.mean, other.mean, sizes.front(), sizes[g]));
  }
  row.standing = StandingOf(row, kind.pseudo);
  row.section = kind.section;
  row.name = std::move(kind.name);
  row.unit = std::move(kind.unit);
  row.metric = std::move(kind.metric);
  return row;
}

}  // namespace

std::string_view ToString(CompareSection section) {
  switch (section) {
    case CompareSection::kTime:
      return "time";
    case CompareSection::kCpu:
      return "CPU";
    case CompareSection::kMemory:
      return "memory";
    case CompareSection::kIo:
      return "I/O";
    case CompareSection::kGpu:
      return "GPU";
    case CompareSection::kPhases:
      return "phases";
    case CompareSection::kFigures:
      return "figures";
    case CompareSection::kApplication:
      return "application";
    case CompareSection::kOther:
      break;
  }
  return "other";
}

std::string_view ToString(Standing standing) {
  switch (standing) {
    case Standing::kWeighty:
      return "weighty";
    case Standing::kUnweighed:
      return "unweighed";
    case Standing::kSlight:
      return "slight";
    case Standing::kSame:
      return "same";
    case Standing::kPseudo:
      break;
  }
  return "pseudo";
}

Band BandOf(std::vector<double> runs) {
  Band band;
  band.mean = band.min = band.max = kUnknown;
  double sum = 0;
  for (const double value : runs) {
    if (std::isnan(value)) continue;
    ++band.count;
    sum += value;
    band.min = std::fmin(band.min, value);
    band.max = std::fmax(band.max, value);
  }
  if (band.count > 0) band.mean = sum / static_cast<double>(band.count);
  band.runs = std::move(runs);
  return band;
}

bool CompareRow::beyond() const {
  return std::any_of(changes.begin(), changes.end(), [](const Change& c) { return c.beyond; });
}

Comparison Compare(const std::vector<ComparedGroup>& groups, const ComparedGroup& besides) {
  Comparison out;
  out.known_runs = besides.size();
  for (const ComparedGroup& group : groups) out.known_runs += group.size();
  Numbers numbers(out.known_runs);
  for (const ComparedGroup& group : groups) {
    for (const ComparedRun& run : group) numbers.Add(run, true);
  }
  for (const ComparedRun& run : besides) numbers.Add(run, false);
  std::vector<StepSize> sizes;
  sizes.reserve(groups.size());
  for (const ComparedGroup& group : groups) sizes.push_back(SizeOf(group));
  for (Asked& asked : numbers.Take()) {
    CompareRow row = RowOf(std::move(asked), groups, sizes);
    const bool any = std::any_of(row.groups.begin(), row.groups.end(),
                                 [](const Band& band) { return band.count > 0; });
    if (any) out.rows.push_back(std::move(row));
  }
  return out;
}

void PutWeightiestFirst(Comparison& comparison) {
  // A series that a number of the summary sums up would say the same again.
  std::set<std::string_view> summed;
  for (const CompareRow& row : comparison.rows) {
    if (row.section <= CompareSection::kIo) summed.insert(row.metric);
  }
  for (CompareRow& row : comparison.rows) {
    if (row.section == CompareSection::kOther && row.standing < Standing::kSlight &&
        summed.contains(row.metric)) {
      row.standing = Standing::kSlight;
    }
  }
  std::stable_sort(comparison.rows.begin(), comparison.rows.end(), StandsBefore);
}

}  // namespace sonde
