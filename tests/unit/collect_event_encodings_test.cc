// The sets of hardware counter events that are shipped, against libpfm4's tables: every name exists
// on the processors that its set is for, and its raw alternative is the same event.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <perfmon/pfmlib_perf_event.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/collect_event_file.h"

namespace sonde::event_files::collect_event_encodings_test {
namespace {

// The tables of libpfm4 that know the processors of a set. Those of Arm processors are in its
// library for Arm alone, and older releases lack the newest.
struct Tables {
  std::string file;
  std::vector<std::string> pmus;
  bool in_4_13;  // in its library for x86, of the oldest release that is built with
};
const std::vector<Tables> kTables = {
    {"haswell_ep", {"hsw_ep"}, true},       {"broadwell_ep", {"bdw_ep"}, true},
    {"skylake_sp", {"skx", "clx"}, true},   {"ice_lake_sp", {"icx"}, true},
    {"sapphire_rapids", {"spr"}, true},     {"sapphire_rapids", {"emr"}, false},
    {"granite_rapids", {"gnr"}, false},     {"zen2", {"amd64_fam17h_zen2"}, true},
    {"zen3", {"amd64_fam19h_zen3"}, true},  {"zen4", {"amd64_fam19h_zen4"}, true},
    {"zen5", {"amd64_fam1ah_zen5"}, false}, {"neoverse_n1", {"arm_n1"}, false},
    {"neoverse_n2", {"arm_n2"}, false},     {"neoverse_v1", {"arm_v1"}, false},
    {"neoverse_v2", {"arm_v2"}, false},
};

// Which register value a name with a second register stands for, by Intel's lists: OFFCORE_RESPONSE
// ALL_READS.L3_MISS (HSX, BDX, CLX) but for request bits that libpfm4 does not name, and OCR
// READS_TO_CORE.DRAM and HWPF_L3.L3_MISS (ICX, SPR, EMR, GNR).
const std::map<std::pair<std::string, std::string>, uint64_t> kSecondRegister = {
    {{"hsw_ep", "memory_reads"}, 0x3fb84003f7}, {{"bdw_ep", "memory_reads"}, 0x3fbc0003f7},
    {{"skx", "memory_reads"}, 0x3f940005b7},    {{"clx", "memory_reads"}, 0x3f940005b7},
    {{"icx", "memory_reads"}, 0x73c000477},     {{"icx", "memory_l3_prefetches"}, 0x94002380},
    {{"spr", "memory_reads"}, 0x73c004477},     {{"spr", "memory_l3_prefetches"}, 0x94002380},
    {{"emr", "memory_reads"}, 0x73c004477},     {{"emr", "memory_l3_prefetches"}, 0x94002380},
    {{"gnr", "memory_reads"}, 0x73c004477},
};

struct Encoding {
  int error;
  perf_event_attr attr;
};
Encoding Encode(const std::string& event) {
  static const int initialized = [] {
    setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
    return pfm_initialize();
  }();
  Encoding e{initialized, {}};
  e.attr.size = sizeof(e.attr);
  pfm_perf_encode_arg_t arg = {};
  arg.attr = &e.attr;
  arg.size = sizeof(arg);
  if (e.error == PFM_SUCCESS) {
    e.error = pfm_get_os_event_encoding(event.c_str(), PFM_PLM3, PFM_OS_PERF_EVENT, &arg);
  }
  return e;
}
bool Knows(const std::string& pmu) {
  for (int id = PFM_PMU_NONE; id < PFM_PMU_MAX; ++id) {
    pfm_pmu_info_t info = {};
    info.size = sizeof(info);
    if (pfm_get_pmu_info(static_cast<pfm_pmu_t>(id), &info) == PFM_SUCCESS && pmu == info.name) {
      return true;
    }
  }
  return false;
}
#if defined(__x86_64__)
constexpr bool kX86 = true;
#else
constexpr bool kX86 = false;
#endif

void Compare(const std::string& pmu, const Event& event) {
  const Encoding named = Encode(pmu + "::" + event.specs[0]);
  ASSERT_EQ(named.error, PFM_SUCCESS) << event.specs[0] << ": " << pfm_strerror(named.error);
  EXPECT_EQ(named.attr.type, PERF_TYPE_RAW) << event.specs[0];
  if (const auto raw = Raw(event.specs.back())) {
    EXPECT_EQ(named.attr.config, *raw) << event.specs[0];
    EXPECT_EQ(named.attr.config1, 0u) << event.specs[0] << " needs a second register";
  } else {
    const auto expected = kSecondRegister.find({pmu, event.name});
    ASSERT_NE(expected, kSecondRegister.end()) << event.specs[0];
    EXPECT_EQ(named.attr.config1, expected->second) << event.specs[0];
  }
}

TEST(EventEncodings, GenericAndRawEventsAreEncodedAsTheyAreWritten) {
  for (const EventSet& set : Sets()) {
    for (const Event& e : set.events()) {
      const std::string& spec = e.specs.back();
      const auto raw = Raw(spec);
      if (!raw && !Generic(spec)) continue;
      const Encoding encoded = Encode(spec);
      ASSERT_EQ(encoded.error, PFM_SUCCESS) << set.file << ' ' << spec;
      EXPECT_EQ(encoded.attr.type, raw ? PERF_TYPE_RAW : PERF_TYPE_HARDWARE) << spec;
      EXPECT_EQ(encoded.attr.config, raw.value_or(encoded.attr.config)) << set.file << ' ' << spec;
    }
  }
}

TEST(EventEncodings, NamedEventsExistAndRawOnesAreTheSame) {
  ASSERT_EQ(Encode("cycles").error, PFM_SUCCESS);
  for (const Tables& tables : kTables) {
    for (const std::string& pmu : tables.pmus) {
      if (!Knows(pmu)) {
        EXPECT_FALSE(kX86 && tables.in_4_13) << pmu;
        continue;
      }
      SCOPED_TRACE(pmu);
      for (const Event& event : Set(tables.file).events()) {
        if (!Generic(event.specs[0]) && !Raw(event.specs[0])) Compare(pmu, event);
      }
    }
  }
}

}  // namespace
}  // namespace sonde::event_files::collect_event_encodings_test
