// Runs beside each other: what differs between them, and whether that is more than noise.
//
// Runs stand in groups; a group's number is the mean of its runs. The first group is what the
// others are compared with. A difference is beyond noise if it is larger than
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
  // Of a metric's number over the run its standard error by the number, as the series' ups and
  // downs tell; absent: not known.
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

// Of the runs of one group. NaN: no run has it.
struct Band {
  std::vector<double> runs;  // in their order; NaN: this one does not have it
  size_t count = 0;          // that have it
  double mean = 0;
  double min = 0;
  double max = 0;
};
Band BandOf(std::vector<double> runs);

enum class NoiseBasis : unsigned char { kRuns, kRule };

// A group against the first one.
struct Change {
  double difference = 0;  // NaN: one of them does not have it
  double noise = 0;       // what it has to exceed
  bool beyond = false;    // or only one of the two has it
};

struct CompareRow {
  CompareSection section = CompareSection::kOther;
  std::string name;
  std::string unit;
  std::string metric;  // whose variation counts; may be ""
  std::vector<Band> groups;
  std::vector<Change> changes;  // of the second group, the third and so on
  NoiseBasis basis = NoiseBasis::kRule;
  bool beyond() const;
};

struct Comparison {
  std::vector<CompareRow> rows;  // by section
  size_t known_runs = 0;         // that tell the noise, of all groups and besides
};

// `besides`: other runs of the first group's command, which tell its noise.
Comparison Compare(const std::vector<ComparedGroup>& groups, const ComparedGroup& besides);

}  // namespace sonde
