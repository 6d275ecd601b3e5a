// Which fabrics `provider = auto` finds in /sys, and what a step says that its data went over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rdma/fabric.h>

#include <filesystem>
#include <fstream>

#include "core/bytes.h"
#include "daemon/link/libfabric/fabric.h"
#include "daemon/link/libfabric/native_fabrics.h"
#include "tests/unit/temp_dir.h"

namespace sonde::tree {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class NativeFabricsTest : public testing::Test {
 protected:
  void AddAdapter(const std::string& name, const std::string& driver, const std::string& layer) {
    const fs::path adapter = sys() / "class/infiniband" / name;
    fs::create_directories(adapter / "device");
    fs::create_directories(sys() / "bus/pci/drivers" / driver);
    fs::create_symlink(sys() / "bus/pci/drivers" / driver, adapter / "device/driver");
    fs::create_directories(adapter / "ports/1");
    std::ofstream(adapter / "ports/1/link_layer") << layer << "\n";
  }
  fs::path sys() const { return directory_.path(); }

  TempDir directory_;
};

TEST_F(NativeFabricsTest, AMachineWithEthernetHasNone) {
  EXPECT_THAT(NativeFabrics(sys()), IsEmpty());
  AddAdapter("rocep1s0", "mlx5_core", "Ethernet");
  EXPECT_THAT(NativeFabrics(sys()), IsEmpty());
  EXPECT_THAT(Fabric::Preference("auto", sys()), ElementsAre("sockets"));
}

TEST_F(NativeFabricsTest, InfiniBandIsForVerbs) {
  AddAdapter("mlx5_1", "mlx5_core", "Ethernet");
  AddAdapter("mlx5_0", "mlx5_core", "InfiniBand");
  EXPECT_THAT(Fabric::Preference("auto", sys()), ElementsAre("verbs", "sockets"));
}

// Whatever udev has named them.
TEST_F(NativeFabricsTest, OthersAreKnownByTheirDrivers) {
  AddAdapter("rdmap0s6", "efa", "Unspecified");
  EXPECT_THAT(NativeFabrics(sys()), ElementsAre("efa"));
  AddAdapter("opap1s0", "hfi1", "InfiniBand");
  EXPECT_THAT(NativeFabrics(sys()), ElementsAre("efa", "verbs", "opx", "psm3"));
  fs::create_directories(sys() / "class/cxi/cxi0");
  EXPECT_THAT(Fabric::Preference("auto", sys()),
              ElementsAre("cxi", "efa", "verbs", "opx", "psm3", "sockets"));
}

TEST_F(NativeFabricsTest, WhatIsNamedIsNotLookedFor) {
  EXPECT_THAT(Fabric::Preference("cxi,sockets", sys()), ElementsAre("cxi", "sockets"));
}

std::string AddressIn(uint32_t format) {
  std::string bytes;
  ByteWriter(bytes).Fixed<uint32_t>(format);
  return bytes + "rest";
}

TEST(CarrierTest, AnAddressTellsWhatCarriesTheData) {
  EXPECT_EQ(Fabric::CarrierOf("tcp:127.0.0.1:4000", "auto"), "sockets");
  EXPECT_EQ(Fabric::CarrierOf(AddressIn(FI_ADDR_CXI), "auto"), "cxi");
  EXPECT_EQ(Fabric::CarrierOf(AddressIn(FI_ADDR_EFA), "auto"), "efa");
  EXPECT_EQ(Fabric::CarrierOf(AddressIn(FI_SOCKADDR_IN), "auto"), "verbs");
  EXPECT_EQ(Fabric::CarrierOf(AddressIn(FI_SOCKADDR_IN), "tcp"), "tcp");
  EXPECT_EQ(Fabric::CarrierOf(AddressIn(FI_SOCKADDR_IN), "tcp,sockets"), "libfabric");
  EXPECT_EQ(Fabric::CarrierOf("", "tcp"), "tcp");
}

}  // namespace
}  // namespace sonde::tree
