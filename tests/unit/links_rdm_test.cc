// What is particular to links over reliable datagrams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/links_carriers.h"

namespace sonde::tree {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Rdm : public testing::Test {
 protected:
  std::unique_ptr<Fabric> Open(const FabricOptions& options = OverPolledRdm::Options()) {
    auto opened = OpenFabric(loop, options);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return *std::move(opened);
  }
  std::string Listen(Fabric& fabric) {
    auto address = fabric.Listen([this](std::unique_ptr<Link> link) {
      accepted.emplace_back(std::make_unique<End>())->Own(std::move(link));
    });
    EXPECT_TRUE(address.ok()) << address.status().message();
    return *address;
  }
  bool Until(const std::function<bool()>& done) { return RunUntil(loop, done); }

  Loop loop;
  std::vector<std::unique_ptr<End>> accepted;
};

TEST_F(Rdm, TwoEndpoints) {
  const auto here = Open();
  const auto there = Open();
  const std::string address = Listen(*there);
  End end;
  auto link = here->Connect(address);
  ASSERT_TRUE(link.ok()) << link.status().message();
  end.Own(*std::move(link));
  ASSERT_TRUE(end.link->Send(1, "hello").ok());
  ASSERT_TRUE(Until([&] { return !accepted.empty() && !accepted[0]->messages.empty(); }));
}

}  // namespace
}  // namespace sonde::tree
