// The way to the page of a running step: sonde open, and what sonde url prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "cli/open/way.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/live/live_archive.h"
#include "tests/unit/profiles_fixture.h"
#include "tests/unit/sonde_command.h"

namespace sonde::cli::cli_open_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class CliOpen : public testing::Test {
 protected:
  void SetUp() override {
    auto live = LiveArchive::Create(dir_.path() + "/archive", TestJob());
    ASSERT_TRUE(live.ok()) << live.status().message();
    live_ = *std::move(live);
    ASSERT_TRUE(live_->PutEndpoint({HostName(), "127.0.0.1", 4243, "s3cret"}).ok());
    std::ofstream(browser_) << "#!/bin/sh\necho \"$@\" > " << seen_ << "\ncat \"${1#file://}\" >> "
                            << seen_ << "\n";
    fs::permissions(browser_, fs::perms::owner_all);
  }
  Outcome Open(const std::string& browser) {
    return RunSonde(dir_.path(), "open 123.0",
                    "BROWSER=" + browser + " XDG_RUNTIME_DIR=" + dir_.path());
  }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  TempDir dir_;
  std::unique_ptr<LiveArchive> live_;
  const std::string browser_ = dir_.path() + "/browser";
  const std::string seen_ = dir_.path() + "/seen";
  const std::string leader_ = dir_.path() + "/.sonde-open-123.0.html";
};

TEST_F(CliOpen, GivesTheBrowserAFileAndNoToken) {
  const Outcome o = Open(browser_);
  EXPECT_EQ(o.code, 0) << o.err;
  const std::string seen = Read(seen_);
  EXPECT_THAT(seen, StartsWith("file://" + leader_ + "\n"));
  EXPECT_THAT(seen, HasSubstr("url=http://localhost:4243/#token=s3cret"));
  EXPECT_EQ(fs::status(leader_).permissions() & fs::perms::all,
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CliOpen, DoesNotWriteThroughWhatSomebodyElseLeft) {
  std::ofstream(dir_.path() + "/other") << "kept";
  fs::create_symlink(dir_.path() + "/other", leader_);
  EXPECT_EQ(Open(browser_).code, 0);
  EXPECT_EQ(Read(dir_.path() + "/other"), "kept");
  EXPECT_THAT(Read(seen_), HasSubstr("token=s3cret"));
}

TEST_F(CliOpen, SaysTheWayWhereNoBrowserIsToBeHad) {
  const Outcome fails = Open("/nonexistent");
  EXPECT_EQ(fails.code, 0);
  EXPECT_THAT(fails.err, HasSubstr("browser '/nonexistent'"));
  EXPECT_THAT(fails.out, HasSubstr("http://localhost:4243/#token=s3cret\n"));
  ASSERT_TRUE(live_->PutEndpoint({"elsewhere", "127.0.0.1", 4243, "s3cret"}).ok());
  const Outcome far = Open(browser_);
  EXPECT_EQ(far.code, 0);
  EXPECT_THAT(far.err, HasSubstr("on another host"));
  EXPECT_THAT(far.out, HasSubstr("ssh -NL 4243:localhost:4243 "));
  EXPECT_FALSE(fs::exists(seen_));
}

TEST(WayToPages, JumpsOverTheHostFromWhichTheNodeIsReached) {
  const Endpoint node = {"n3", "127.0.0.1", 4243, "t", 1};
  const auto ssh = [&](const Here& here) { return WayTo(node, here).ssh; };
  const std::string direct = "ssh -NL 4243:localhost:4243 ann@n3";
  const std::string over_login = "ssh -NL 4243:localhost:4243 -J ann@login1 ann@n3";
  // On the head's host; the job was submitted there, or elsewhere.
  EXPECT_EQ(ssh({"ann", "n3", "", true, false}), direct);
  EXPECT_EQ(ssh({"ann", "n3", "n3", true, false}), direct);
  EXPECT_EQ(ssh({"ann", "n3", "login1", false, false}), over_login);
  // On a login node to which somebody came by ssh, or at which they sit.
  EXPECT_EQ(ssh({"ann", "login1", "", true, false}), over_login);
  EXPECT_EQ(ssh({"ann", "login1", "", false, true}), direct);
  EXPECT_TRUE(WayTo(node, {"ann", "n3", "", true, false}).is_here);
  EXPECT_FALSE(WayTo(node, {"ann", "login1", "", true, false}).is_here);
}

}  // namespace
}  // namespace sonde::cli::cli_open_test
