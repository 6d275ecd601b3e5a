// Runs beside each other: what differs between them, and whether that is more than noise.
//
// Runs are in groups; a group's number is the mean of its runs. The other groups are compared with
// the first one. A difference is beyond noise if it is larger than
//
//   runs     where the groups and the runs of the same command that are known besides have three
//            or more degrees of freedom: t * s * sqrt(1/n + 1/m), with the standard deviation s of
//            the runs about the means of their groups, the t of Student's distribution for 95 %,
//            and n and m runs in the two groups; but at least kLeast of the value;
//   rule     elsewhere: kRule of the value, or twice the standard error that the ups and downs of
//            the series within the runs make likely, whichever is more.
//
// Thread safety: values and functions without state.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/model/profile.h"
#include "profiles/model/summary.h"

namespace sonde {

inline constexpr double kNoiseRule = 0.05;
inline constexpr double kNoiseLeast = 0.005;

struct ComparedRun {
  Profile profile;
  Summary summary;
  // For a metric's number over the run, its standard error divided by the number, as the ups and
  // downs of the series show it; absent: not known.
  std::map<std::string, double, std::less<>> variation;
};
using ComparedGroup = std::vector<ComparedRun>;

// In the order of what people look at first.
enum class CompareSection : unsigned char {
  kTime,
  kCpu,
  kMemory,
  kIo,
  kGpu,
  kPhases,
  kFigures,
  kApplication,
  kOther,  // the rest of the footprint
};
std::string_view ToString(CompareSection section);

// The numbers of one group's runs. NaN: no run has the number.
struct Band {
  std::vector<double> runs;  // in their order; NaN: this run has no number
  size_t count = 0;          // runs that have a number
  double mean = 0;
  double min = 0;
  double max = 0;
};
Band BandOf(std::vector<double> runs);

enum class NoiseBasis : unsigned char { kRuns, kRule };

// A group against the first one.
struct Change {
  double difference = 0;  // NaN: one of the groups has no number
  double noise = 0;       // a difference beyond noise is larger
  bool beyond = false;    // or only one of the two groups has a number
};

// Where a row stands in the order of a comparison.
enum class Standing : unsigned char {
  kWeighty,    // beyond noise, and kLeastWeight of the step or more is behind it; by weight
  kUnweighed,  // beyond noise, of what nobody knows: by how many times its noise it is, at most
  kSlight,     // beyond noise, but less of the step is behind it, or a number that sums it up says
               // the same; by weight
  kSame,       // within noise; by section
  kPseudo,     // of filesystems that hold no files, such as /proc: those beyond noise first
};
inline constexpr double kLeastWeight = 0.001;
std::string_view ToString(Standing standing);

struct CompareRow {
  CompareSection section = CompareSection::kOther;
  std::string name;
  std::string unit;
  std::string metric;  // whose variation counts; may be ""
  std::vector<Band> groups;
  std::vector<Change> changes;  // of the second group, the third and so on
  NoiseBasis basis = NoiseBasis::kRule;
  double weight = kMissing;  // the largest of its changes'; NaN: not known
  Standing standing = Standing::kSame;
  bool beyond() const;
};

struct Comparison {
  std::vector<CompareRow> rows;  // by section
  size_t known_runs = 0;         // runs that tell the noise, of all groups and besides
};

// `besides`: other runs of the first group's command, which tell its noise.
Comparison Compare(const std::vector<ComparedGroup>& groups, const ComparedGroup& besides);

// The order of Standing, for readers: weight.h says what matters most.
void PutWeightiestFirst(Comparison& comparison);

}  // namespace sonde
