#include "launcher/slurm_conf.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace sonde::launch {
namespace {

// Files by their paths.
class SlurmConfs : public testing::Test {
 protected:
  SlurmNetwork Read(const std::string& slurm_conf) {
    files_["/etc/slurm/slurm.conf"] = slurm_conf;
    return ReadSlurmNetwork("/etc/slurm/slurm.conf", [this](const std::string& path) {
      ++reads_;
      const auto file = files_.find(path);
      if (file == files_.end()) return Result<std::string>(Status(Code::kNotFound, path));
      return Result<std::string>(file->second);
    });
  }

  std::map<std::string, std::string> files_;
  int reads_ = 0;
};

TEST_F(SlurmConfs, NothingIsSaid) {
  const SlurmNetwork network = Read("ClusterName=c\n#SrunPortRange=1-2\nSrunPort=3-4\n");
  EXPECT_EQ(network.srun_ports, std::nullopt);
  EXPECT_TRUE(network.ipv4);
  EXPECT_FALSE(network.ipv6);
  EXPECT_TRUE(network.all_addresses);
}

TEST_F(SlurmConfs, PortsAreFoundHoweverTheyAreWritten) {
  for (const char* text : {
           "ClusterName=c\nsrunportrange = 60001-63000 # fw\n",
           "SrunPortRange=60001-63000",
           "\tSRUNPORTRANGE\t=\t60001-63000\r\nClusterName=c\r\n",
           "SrunPortRange=\\\n60001-63000\n",
           "SlurmctldPort=6817 SrunPortRange=60001-63000 SlurmdPort=6818\n",
           "Comment=\"a = b\" SrunPortRange=\"60001-63000\"\n",
           "SrunPortRange=1-2\nSrunPortRange=60001-63000\n",
           "Comment=a\\#b SrunPortRange=60001-63000\n",
       }) {
    EXPECT_EQ(Read(text).srun_ports, PortRange(60001, 63000)) << text;
  }
}

TEST_F(SlurmConfs, WrongOnesAreNone) {
  for (const char* text :
       {"SrunPortRange=5-4", "SrunPortRange=", "SrunPortRange", "=1-2", "SrunPortRange=\"1-2",
        "Comment=SrunPortRange=1-2", "garbage \x01 = 3"}) {
    EXPECT_EQ(Read(text).srun_ports, std::nullopt) << text;
  }
}

TEST_F(SlurmConfs, AddressesFollowCommunicationParameters) {
  SlurmNetwork network = Read("CommunicationParameters=NoCtldInAddrAny,EnableIPv6\n");
  EXPECT_TRUE(network.ipv6);
  EXPECT_TRUE(network.ipv4);
  EXPECT_TRUE(network.all_addresses) << "that is slurmctld's";
  network = Read("communicationparameters=block_null_hash,enableipv6,disableipv4,noinaddrany\n");
  EXPECT_TRUE(network.ipv6);
  EXPECT_FALSE(network.ipv4);
  EXPECT_FALSE(network.all_addresses);
  EXPECT_FALSE(Read("TopologyParam=NoInAddrAny\n").all_addresses);
}

TEST_F(SlurmConfs, IncludedFilesCount) {
  files_["/etc/slurm/net.conf"] = "SrunPortRange=60001-63000\ninclude deep/more.conf\n";
  files_["/etc/slurm/deep/more.conf"] = "CommunicationParameters=EnableIPv6\n";
  files_["/site/wide.conf"] = "TopologyParam=NoInAddrAny\n";
  const SlurmNetwork network =
      Read("ClusterName=c\n  Include\tnet.conf # ports\ninclude /site/wide.conf\ninclude gone\n");
  EXPECT_EQ(network.srun_ports, PortRange(60001, 63000));
  EXPECT_TRUE(network.ipv6) << "relative to the directory of slurm.conf";
  EXPECT_FALSE(network.all_addresses);
}

TEST_F(SlurmConfs, AnIncludedFileMayNameTheCluster) {
  files_["/etc/slurm/net.blue.conf"] = "SrunPortRange=1-2\n";
  EXPECT_EQ(Read("ClusterName=Blue\ninclude net.%c.conf\n").srun_ports, PortRange(1, 2));
  Read("ClusterName=a%c\ninclude %c%c\n");  // ends
}

TEST_F(SlurmConfs, FilesThatIncludeThemselvesEnd) {
  std::string loop;
  for (int i = 0; i < 100; ++i) loop += "include slurm.conf\n";
  EXPECT_EQ(Read(loop + "SrunPortRange=1-2\n").srun_ports, PortRange(1, 2));
  EXPECT_LE(reads_, 64);
}

}  // namespace
}  // namespace sonde::launch
