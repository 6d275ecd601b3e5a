#include "launcher/site/slurm_conf.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "launcher/site/slurm_node.h"
#include "tests/unit/temp_dir.h"

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

TEST_F(SlurmConfs, WhereMungeIsAndWhoMayOpenWhatItWraps) {
  EXPECT_EQ(Read("AuthType=auth/munge\n").munge_socket, "");
  EXPECT_EQ(Read("AuthType=auth/munge\n").slurmd_user, "root");
  EXPECT_EQ(Read("AuthInfo=socket=/run/munge/s\n").munge_socket, "/run/munge/s");
  EXPECT_EQ(Read("authinfo=cred_expire=15,socket=/s,ttl=60\n").munge_socket, "/s");
  EXPECT_EQ(Read("AuthInfo=cred_expire=15\n").munge_socket, "");
  EXPECT_EQ(Read("SlurmdUser=slurm(64030)\n").slurmd_user, "slurm");
  EXPECT_EQ(Read("SlurmUser=slurm\nSlurmdUser=1001\n").slurmd_user, "1001");
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

// As where Slurm is in /opt/slurm.
TEST(FindSlurmConf, LooksBesideTheRunningProgram) {
  const TempDir directory;
  const std::string& prefix = directory.path();
  const std::string link = prefix + "/exe";
  for (const char* made : {"/sbin", "/etc/slurm"}) {
    std::filesystem::create_directories(prefix + made);
  }
  std::ofstream(prefix + "/sbin/slurmstepd") << "";
  std::filesystem::create_symlink(prefix + "/sbin/slurmstepd", link);
  const Environment none;
  const std::string elsewhere = FindSlurmConf(none, link);
  EXPECT_FALSE(elsewhere.starts_with(prefix)) << elsewhere;
  std::ofstream(prefix + "/etc/slurm/slurm.conf") << "";
  EXPECT_EQ(FindSlurmConf(none, link), prefix + "/etc/slurm/slurm.conf");
  std::ofstream(prefix + "/etc/slurm.conf") << "";
  EXPECT_EQ(FindSlurmConf(none, link), prefix + "/etc/slurm.conf");
  std::string given = "SLURM_CONF=/site/slurm.conf";
  char* const variables[] = {given.data(), nullptr};
  EXPECT_EQ(FindSlurmConf(Environment(variables), link), "/site/slurm.conf");
  EXPECT_EQ(FindSlurmConf(none, prefix + "/gone"), FindSlurmConf(none, "/nonexistent"));
}

// --- Nodes ---

TEST(NodeNames, ListsAsSlurmWritesThem) {
  const struct {
    const char* list;
    const char* node;
    bool named;
  } cases[] = {
      {"n1", "n1", true},
      {"n1", "n11", false},
      {"n[1-4]", "n4", true},
      {"n[1-4]", "n5", false},
      {"n[01-12]", "n07", true},
      {"n[01-12]", "n7", false},
      {"n[1-12]", "n07", false},
      {"n[8-12]", "n10", true},
      {"a,n[1,3],b", "n3", true},
      {"a,n[1,3],b", "n2", false},
      {"a,n[1,3],b", "b", true},
      {"r[1-2]n[1-3]", "r2n3", true},
      {"r[1-2]n[1-3]", "r3n3", false},
      {"n[1-4", "n1", false},
      {"n[]", "n", false},
      {"n[1-2]-ib", "n1-ib", true},
      {"n[1-2]", "n", false},
      {"", "n", false},
  };
  for (const auto& c : cases)
    EXPECT_EQ(NamesNode(c.list, c.node), c.named) << c.list << " " << c.node;
}

TEST(SlurmNodes, CoresAsSlurmCountsThem) {
  const struct {
    const char* conf;
    uint32_t cores;
    uint32_t specialized;
  } cases[] = {
      {"NodeName=n[1-4] CPUs=64", 64, 0},
      {"NodeName=n[1-4] CPUs=64 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 CoreSpecCount=2", 32,
       2},
      {"nodename=n[1-4] Boards=2 SocketsPerBoard=1 CoresPerSocket=8 CpuSpecList=0,1", 16, 2},
      {"NodeName=n2 CPUs=8 CoresPerSocket=4 Sockets=1 ThreadsPerCore=2 CpuSpecList=0-1", 4, 1},
      {"NodeName=DEFAULT Sockets=2 CoresPerSocket=8\nNodeName=n[1-4] \\\n CoreSpecCount=1", 16, 1},
      {"NodeName=other CPUs=4", 0, 0},
      {"NodeName=n2", 1, 0},
      {"NodeName=n2 CPUs=nonsense", 1, 0},
      {"", 0, 0},
  };
  for (const auto& c : cases) {
    const auto read = [&](const std::string&) { return Result<std::string>(c.conf); };
    const SlurmNode node = ReadSlurmOnNode("/etc/slurm/slurm.conf", "n2", read).node;
    EXPECT_EQ(node.cores, c.cores) << c.conf;
    EXPECT_EQ(node.specialized, c.specialized) << c.conf;
  }
}

TEST(SlurmNodes, WhetherJobsShareCores) {
  const struct {
    const char* conf;
    bool shared;
  } cases[] = {
      {"PartitionName=a Nodes=n[1-4]", false},
      {"PartitionName=a Nodes=n[1-4] OverSubscribe=FORCE", true},
      {"PartitionName=a Nodes=ALL oversubscribe=force:2", true},
      {"PartitionName=a Nodes=n1,n2 Shared=YES:4", true},
      {"PartitionName=a Nodes=n2 OverSubscribe=YES", true},
      {"PartitionName=a Nodes=n2 OverSubscribe=FORCE:1", true},
      {"PartitionName=a Nodes=n2 OverSubscribe=YES:1", false},
      {"PreemptMode=OFF\nPartitionName=a Nodes=n2", false},
      {"PreemptMode=REQUEUE\nPartitionName=a Nodes=n2 PreemptMode=CANCEL", false},
      {"PreemptMode=SUSPEND,GANG\nPartitionName=a Nodes=n2", true},
      {"PartitionName=a Nodes=n2\npreemptmode=gang", true},
      {"PartitionName=a Nodes=n1 PreemptMode=suspend", true},
      {"PartitionName=a Nodes=n2 OverSubscribe=EXCLUSIVE", false},
      {"PartitionName=a Nodes=n2 OverSubscribe=NO", false},
      {"PartitionName=a Nodes=n2\nPartitionName=b Nodes=n1 OverSubscribe=FORCE", false},
      {"PartitionName=a Nodes=n2\nPartitionName=b Nodes=n1,n2 OverSubscribe=FORCE", true},
      {"PartitionName=DEFAULT OverSubscribe=FORCE:3\nPartitionName=a Nodes=n2", true},
      {"PartitionName=a Nodes=n2\nPartitionName=DEFAULT OverSubscribe=FORCE:3", false},
      {"PartitionName=a Nodes=gpus OverSubscribe=FORCE\nNodeSet=gpus Feature=gpu", true},
      {"PartitionName=a Nodes=gpus OverSubscribe=FORCE", false},
      {"", false},
  };
  for (const auto& c : cases) {
    const auto read = [&](const std::string&) { return Result<std::string>(c.conf); };
    const SlurmNode node = ReadSlurmOnNode("/etc/slurm/slurm.conf", "n2", read).node;
    EXPECT_EQ(node.cores_are_shared, c.shared) << c.conf;
  }
}

// Whoever is alone may read what tells of others.
TEST(SlurmNodes, WhatIsNotReadCompletelyMayShareCores) {
  std::string many;
  for (int i = 0; i < 64; ++i) many += "include leaf\n";
  const struct {
    std::map<std::string, std::string> files;
    std::string why;
  } cases[] = {
      {{{"slurm.conf", "include leaf\n"}, {"leaf", "PartitionName=a Nodes=n2\n"}}, ""},
      {{{"slurm.conf", "include gone\nPartitionName=a Nodes=n2\n"}}, "no /etc/slurm/gone"},
      {{}, "no /etc/slurm/slurm.conf"},
      {{{"slurm.conf", many}, {"leaf", ""}}, "include /etc/slurm/leaf: more than 64 files"},
      {{{"slurm.conf", "include slurm.conf\n"}},
       "include /etc/slurm/slurm.conf: more than 8 files, each of which includes the next"},
  };
  for (const auto& c : cases) {
    const auto read = [&](const std::string& path) {
      const auto file = c.files.find(path.substr(std::string("/etc/slurm/").size()));
      if (file == c.files.end()) return Result<std::string>(Status(Code::kNotFound, "no " + path));
      return Result<std::string>(file->second);
    };
    const SlurmOnNode found = ReadSlurmOnNode("/etc/slurm/slurm.conf", "n2", read);
    EXPECT_EQ(found.complete.message(), c.why);
    EXPECT_EQ(found.node.cores_are_shared, !c.why.empty()) << c.why;
  }
}

TEST(SlurmNodes, AFileOfSomeMebibytesIsReadAndNoneIsNoAnswer) {
  const TempDir directory;
  std::string variable = "SLURM_CONF=" + directory.path() + "/slurm.conf";
  char* const variables[] = {variable.data(), nullptr};
  const auto read = [&] { return ReadSlurmOnNode(Environment(variables), "n2"); };
  EXPECT_FALSE(read().complete.ok());
  EXPECT_TRUE(read().node.cores_are_shared);
  const std::string comment = "#" + std::string(4095, 'x') + "\n";
  std::ofstream file(directory.path() + "/slurm.conf");
  for (int i = 0; i < 1024; ++i) file << comment;
  file << "PartitionName=a Nodes=n2\n" << std::flush;
  EXPECT_TRUE(read().complete.ok()) << read().complete.message();
  EXPECT_FALSE(read().node.cores_are_shared);
  for (int i = 0; i < 3072; ++i) file << comment;
  file << std::flush;
  EXPECT_EQ(read().complete.message(),
            "read " + directory.path() + "/slurm.conf: longer than 16 MiB");
  EXPECT_TRUE(read().node.cores_are_shared);
}

TEST(SlurmNodes, WhereSlurmdRuns) {
  const TempDir directory;
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path file = directory.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  const auto read = [&](const std::string&) {
    return Result<std::string>("SlurmdPidFile=" + directory.path() + "/slurmd.%n.pid\n");
  };
  const SlurmNode node = ReadSlurmOnNode("/etc/slurm/slurm.conf", "n2", read).node;
  EXPECT_EQ(SlurmdProcessors(node, directory.path() + "/proc"), "");
  write("slurmd.n2.pid", "77\n");
  EXPECT_EQ(SlurmdProcessors(node, directory.path() + "/proc"), "");
  write("proc/77/status",
        "Name:\tslurmd\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1,64\nMems:\t1\n");
  EXPECT_EQ(SlurmdProcessors(node, directory.path() + "/proc"), "0-1,64");
}

}  // namespace
}  // namespace sonde::launch
