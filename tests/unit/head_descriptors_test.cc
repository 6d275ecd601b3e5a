#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/head/descriptors.h"

namespace sonde::head {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Descriptors, EveryNodeTakesOneAndThoseInTheTreeAnother) {
  EXPECT_EQ(DescriptorsFor(1024, 1024, 16) - DescriptorsFor(1000, 1024, 16), 24U);
  EXPECT_EQ(DescriptorsFor(16, 1024, 16) - DescriptorsFor(15, 1024, 16), 2U);
}

TEST(Descriptors, BehindGatewaysNodesTakeNone) {
  EXPECT_LT(DescriptorsFor(100'000, 1024, 16), DescriptorsFor(2600, 4096, 16));
  EXPECT_GE(DescriptorsFor(1025, 1024, 16), DescriptorsFor(1024, 1024, 16));
}

TEST(Descriptors, ALimitThatIsTooLowIsTold) {
  const uint64_t needed = DescriptorsFor(1024, 1024, 16);
  EXPECT_EQ(TooFewDescriptors(1024, 1024, 16, needed), "");
  EXPECT_THAT(
      TooFewDescriptors(1024, 1024, 16, needed - 1),
      AllOf(HasSubstr("1024 nodes"), HasSubstr(std::to_string(needed)),
            HasSubstr(std::to_string(needed - 1) + " open files"), HasSubstr("ulimit -Hn")));
}

}  // namespace
}  // namespace sonde::head
