// The note about calls that were asked for and of which nothing came.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/head/record/uncounted.h"

namespace sonde::head::head_uncounted_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<Series> Having(const std::vector<std::string>& metrics) {
  std::vector<Series> all(metrics.size());
  for (size_t i = 0; i < metrics.size(); ++i) all[i].metric.name = metrics[i];
  return all;
}

TEST(Uncounted, NothingIsSaidOfCallsThatNobodyAskedForOrThatCame) {
  EXPECT_EQ(UncountedNote({}, Having({})), "");
  EXPECT_EQ(UncountedNote({.mpi = true}, Having({"node_load1", "mpi_calls_total"})), "");
  EXPECT_EQ(UncountedNote({.io = true}, Having({"io_calls_total"})), "");
  EXPECT_EQ(UncountedNote({.functions = true}, Having({"function_calls_total"})), "");
}

TEST(Uncounted, TheProgramsOwnMetricsAreNotTheLibraries) {
  EXPECT_NE(UncountedNote({.io = true}, Having({"io_bandwidth", "mpi_calls_total"})), "");
}

TEST(Uncounted, ItSaysWhichAndWhy) {
  EXPECT_THAT(UncountedNote({.mpi = true}, Having({"node_load1"})),
              AllOf(StartsWith("calls of MPI were to be counted, and no process recorded any: the "
                               "programs made none, or did not load"),
                    HasSubstr("sets LD_PRELOAD anew"), Not(HasSubstr("-finstrument"))));
  EXPECT_THAT(
      UncountedNote({.functions = true}, Having({})),
      StartsWith("calls of functions were to be counted, and no process recorded any: the "
                 "programs were not compiled with -finstrument-functions, or did not load"));
  EXPECT_THAT(UncountedNote({.mpi = true, .io = true, .functions = true}, Having({})),
              StartsWith("calls of MPI, for files and of functions were to be counted"));
  EXPECT_THAT(
      UncountedNote({.mpi = true, .io = true, .functions = true}, Having({"io_calls_total"})),
      StartsWith("calls of MPI and of functions were to be counted"));
}

}  // namespace
}  // namespace sonde::head::head_uncounted_test
