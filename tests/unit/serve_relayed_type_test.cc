// What a user's own head says of its answers, at the address of the site's server.
#include <gtest/gtest.h>

#include "serve/relayed_type.h"

namespace sonde::serve {
namespace {

TEST(RelayedType, PassesOnWhatNoBrowserRuns) {
  for (const char* said :
       {"application/json; charset=UTF-8", "text/plain; version=0.0.4; charset=utf-8", "text/csv",
        "application/openmetrics-text; version=1.0.0; charset=utf-8", "text/event-stream"}) {
    EXPECT_EQ(RelayedType(said), said);
  }
}

TEST(RelayedType, EverythingElseIsSaved) {
  for (const char* said :
       {"text/html", "TEXT/HTML", "text/html; charset=utf-8", " text/html", "image/svg+xml", "",
        "application/xhtml+xml", "text/javascript", "text/css", "application/jsonx", "nonsense"}) {
    EXPECT_EQ(RelayedType(said), "application/octet-stream") << said;
  }
}

}  // namespace
}  // namespace sonde::serve
