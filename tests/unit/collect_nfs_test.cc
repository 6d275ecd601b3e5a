// The NFS client: calls, traffic by mount, mounts that share a filesystem, and texts that are none.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "daemon/collect/filesystems/filesystem_sources.h"
#include "daemon/collect/filesystems/nfs_mountstats.h"
#include "daemon/collect/sampler.h"
#include "tests/unit/collect_tree.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_nfs_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsNan;

constexpr std::string_view kRpc =
    "net 70 71 72 45\n"
    "rpc 1218785755 374636 1218815394\n"
    "proc2 3 1 2 3\n"
    "proc3 22 0 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 "
    "121\n"
    "proc4 61 0 201 202 203 204 205 206 207 208 209 210 211 212 213 214 215 216 217 218 219 220 "
    "221 "
    "222 223 224 225 226 227 228 229 230 231 232 233 234 235 236 237 238 239 240 241 242 243 244 "
    "245 246 247 248 249 250 251 252 253 254 255 256 257 258 259 260\n";

std::string Request(std::string_view proto, std::string_view method) {
  return fmt::format("node_nfs_requests_total{{method=\"{}\",proto=\"{}\"}}", method, proto);
}

TEST(Nfs, LevelTwoHasTheCalls) {
  ReadBuffer buffer;
  const auto source = MakeNfsSource(Roots(), 2, buffer);
  EXPECT_TRUE(source->series().empty());
  source->Parse(kRpc);
  EXPECT_EQ(Value(*source, "node_nfs_rpcs_total"), 1218785755);
  EXPECT_EQ(Value(*source, "node_nfs_rpc_retransmissions_total"), 374636);
  EXPECT_EQ(Value(*source, "node_nfs_rpc_authentication_refreshes_total"), 1218815394);
  EXPECT_EQ(source->series().size(), 3u);
}

TEST(Nfs, LevelFourHasTheProcedures) {
  ReadBuffer buffer;
  const auto source = MakeNfsSource(Roots(), 4, buffer);
  source->Parse(kRpc);
  EXPECT_EQ(Value(*source, Request("3", "Null")), 0);
  EXPECT_EQ(Value(*source, Request("3", "GetAttr")), 101);
  EXPECT_EQ(Value(*source, Request("3", "Read")), 106);
  EXPECT_EQ(Value(*source, Request("3", "Commit")), 121);
  EXPECT_EQ(Value(*source, Request("4", "Read")), 201);
  EXPECT_EQ(Value(*source, Request("4", "Close")), 208);
  EXPECT_EQ(Value(*source, Request("4", "Access")), 217);
  EXPECT_EQ(Value(*source, Request("4", "ReadDir")), 229);
  EXPECT_EQ(Value(*source, Request("4", "SecInfo")), 236);
  EXPECT_EQ(source->series().size(), 3u + 22 + 37);
}

TEST(Nfs, WhatIsCutShortOrNoNumberIsMissing) {
  ReadBuffer buffer;
  const auto source = MakeNfsSource(Roots(), 4, buffer);
  source->Parse("rpc 5 x 7\nproc3 22 1 2\nproc4 61 1 2 3");
  EXPECT_EQ(Value(*source, "node_nfs_rpcs_total"), 5);
  EXPECT_THAT(Value(*source, "node_nfs_rpc_retransmissions_total"), IsNan());
  EXPECT_EQ(Value(*source, Request("3", "GetAttr")), 2);
  EXPECT_THAT(Value(*source, Request("3", "SetAttr")), IsNan());
  EXPECT_THAT(Value(*source, Request("4", "Read")), IsNan());
  source->Parse("rpc 99999999999999999999 -1 8\n");
  EXPECT_THAT(Value(*source, "node_nfs_rpcs_total"), IsNan());
  EXPECT_THAT(Value(*source, Request("3", "GetAttr")), IsNan());
}

TEST(Nfs, WithoutTheClientThereIsNothing) {
  const Tree tree;
  ReadBuffer buffer;
  const auto source = MakeNfsSource(tree.roots(), 4, buffer);
  source->Sample(kSecond);
  EXPECT_TRUE(source->series().empty());
  tree.Write("proc/net/rpc/nfs", kRpc);
  source->Sample(1000 * kSecond);
  EXPECT_EQ(Value(*source, "node_nfs_rpcs_total"), 1218785755);
}

// A mount as the kernel writes it.
std::string MountStats(std::string_view device, std::string_view point, std::string_view bytes,
                       std::string_view operations) {
  return fmt::format(
      "device {} mounted on {} with fstype nfs4 statvers=1.1\n"
      "\topts:\trw,vers=4.2,rsize=1048576,hard,proto=tcp,timeo=600,sec=sys,clientaddr=10.0.0.5\n"
      "\tage:\t13968\n"
      "\tcaps:\tcaps=0xfff7,wtmult=512,dtsize=32768,bsize=0,namlen=255\n"
      "\tsec:\tflavor=1,pseudoflavor=1\n"
      "\tevents:\t52 226 0 0 1 13 398 0 0 331 0 47 0 0 77 0 0 77 0 0 0 0 0 0 0 0 0\n"
      "\tbytes:\t{}\n"
      "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
      "\txprt:\ttcp 832 0 1 0 11 6428 6428 0 12154 0 24 26 5726\n"
      "\tper-op statistics\n{}\n",
      device, point, bytes, operations);
}
constexpr std::string_view kOthers =
    "device proc mounted on /proc with fstype proc\n"
    "device /dev/sda1 mounted on / with fstype ext4\n";
constexpr std::string_view kHomeOperations =
    "\t        NULL: 1 1 0 44 24 0 0 0 0\n"
    "\t        READ: 1298 1300 2 207680 1210292152 6 79386 79407 0\n"
    "\t       WRITE: 10 10 0 1000 200 1 50 52 0\n"
    "\t      COMMIT: 3 3 0 30 40 0 7 8 0\n"
    "\t        OPEN: 100 100 0 5000 6000 2 300 303 1\n"
    "\t     GETATTR: 200 201 1 7000 8000 4 400 405 0\n";

class NfsMounts : public testing::Test {
 protected:
  void WriteHome() const {
    Write(std::string(kOthers) + Home(), "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n" + HomeInfo());
  }
  static std::string Home() {
    return MountStats("server:/home", "/home", "1000 2000 300 400 5000 6000 7 8", kHomeOperations);
  }
  static std::string HomeInfo() { return "2 1 0:41 / /home rw - nfs4 server:/home rw\n"; }
  void Write(std::string_view mountstats, std::string_view mountinfo) const {
    tree_.Write("proc/self/mountinfo", mountinfo);
    tree_.Write("proc/self/mountstats", mountstats);
  }
  void Make(int level) { source_ = MakeNfsMountsSource(tree_.roots(), level, buffer_); }
  void Sample(Nanos after = kSecond) { source_->Sample(now_ += after); }
  double Get(std::string_view name) const { return Value(*source_, name); }
  double GetMount(std::string_view metric, std::string_view point = "/home") const {
    return Get(fmt::format("node_mountstats_nfs_{}{{mountpoint=\"{}\"}}", metric, point));
  }
  double GetCalls(std::string_view metric, std::string_view operation,
                  std::string_view point = "/home") const {
    return Get(
        fmt::format("node_mountstats_nfs_operations_{}{{mountpoint=\"{}\",operation=\"{}\"}}",
                    metric, point, operation));
  }

  Tree tree_;
  ReadBuffer buffer_;
  std::unique_ptr<Source> source_;
  Nanos now_ = 0;
};

TEST_F(NfsMounts, LevelTwoHasAllMountsTogether) {
  WriteHome();
  Make(2);
  Sample();
  EXPECT_EQ(Get("node_nfs_application_read_bytes_total"), 1300);
  EXPECT_EQ(Get("node_nfs_application_written_bytes_total"), 2400);
  EXPECT_EQ(Get("node_nfs_server_read_bytes_total"), 5000);
  EXPECT_EQ(Get("node_nfs_server_written_bytes_total"), 6000);
  EXPECT_EQ(Get("node_nfs_operations_total{operation=\"read\"}"), 1298);
  EXPECT_EQ(Get("node_nfs_operations_total{operation=\"commit\"}"), 3);
  EXPECT_EQ(Get("node_nfs_operations_total{operation=\"metadata\"}"), 301);
  EXPECT_DOUBLE_EQ(Get("node_nfs_operation_seconds_total{operation=\"read\"}"), 79.407);
  EXPECT_DOUBLE_EQ(Get("node_nfs_operation_seconds_total{operation=\"metadata\"}"), 0.708);
  EXPECT_EQ(source_->series().size(), 12u);
}

TEST_F(NfsMounts, LevelFourHasEachMount) {
  WriteHome();
  Make(4);
  Sample();
  EXPECT_EQ(GetMount("read_bytes_total"), 1000);
  EXPECT_EQ(GetMount("write_bytes_total"), 2000);
  EXPECT_EQ(GetMount("direct_read_bytes_total"), 300);
  EXPECT_EQ(GetMount("direct_write_bytes_total"), 400);
  EXPECT_EQ(GetMount("total_read_bytes_total"), 5000);
  EXPECT_EQ(GetMount("total_write_bytes_total"), 6000);
  EXPECT_EQ(GetCalls("requests_total", "read"), 1298);
  EXPECT_EQ(GetCalls("transmissions_total", "read"), 1300);
  EXPECT_EQ(GetCalls("major_timeouts_total", "read"), 2);
  EXPECT_EQ(GetCalls("sent_bytes_total", "read"), 207680);
  EXPECT_EQ(GetCalls("received_bytes_total", "read"), 1210292152);
  EXPECT_DOUBLE_EQ(GetCalls("queue_time_seconds_total", "read"), 0.006);
  EXPECT_DOUBLE_EQ(GetCalls("response_time_seconds_total", "read"), 79.386);
  EXPECT_DOUBLE_EQ(GetCalls("request_time_seconds_total", "read"), 79.407);
  EXPECT_EQ(GetCalls("transmissions_total", "metadata"), 1 + 100 + 201);
  EXPECT_EQ(GetCalls("received_bytes_total", "commit"), 40);
  EXPECT_EQ(source_->series().size(), 12u + 6 + 4 * 8);
}

TEST_F(NfsMounts, MountsOfOneFilesystemCountOnce) {
  const std::string numbers = "1 2 0 0 3 4 0 0";
  Write(std::string(kOthers) + Home() +
            MountStats("server:/home/u", "/u\\040x", "1000 2000 300 400 5000 6000 7 8",
                       kHomeOperations) +
            MountStats("other:/data", "/data", numbers, ""),
        HomeInfo() + "3 1 0:41 /u /u\\040x rw - nfs4 server:/home/u rw\n" +
            "4 1 0:42 / /data rw - nfs4 other:/data rw\n");
  Make(4);
  Sample();
  EXPECT_EQ(Get("node_nfs_application_read_bytes_total"), 1301);
  EXPECT_EQ(Get("node_nfs_server_written_bytes_total"), 6004);
  EXPECT_EQ(GetMount("total_read_bytes_total", "/data"), 3);
  EXPECT_FALSE(Has(*source_, "node_mountstats_nfs_read_bytes_total{mountpoint=\"/u x\"}"));
  EXPECT_THAT(GetCalls("requests_total", "read", "/data"), IsNan()) << "no line, no number";
}

TEST_F(NfsMounts, WithoutAMountTheFileIsReadOnceAMinute) {
  Write(kOthers, "");
  Make(2);
  Sample();
  EXPECT_TRUE(source_->series().empty());
  EXPECT_EQ(source_->generation(), 0u);
  WriteHome();
  Sample(30 * kSecond);
  EXPECT_TRUE(source_->series().empty());
  Sample(31 * kSecond);
  EXPECT_EQ(Get("node_nfs_server_read_bytes_total"), 5000);
  Write(kOthers, "");
  Sample();
  EXPECT_TRUE(source_->series().empty());
}

TEST_F(NfsMounts, AFileThatCannotBeReadIsMissingUntilItCan) {
  WriteHome();
  Make(2);
  Sample();
  for (const std::string& text : {std::string(), Home().substr(0, 500)}) {
    tree_.Write("proc/self/mountstats", text);
    Sample();
    EXPECT_THAT(Get("node_nfs_server_read_bytes_total"), IsNan()) << text;
  }
  WriteHome();
  Sample();
  EXPECT_EQ(Get("node_nfs_server_read_bytes_total"), 5000);
}

TEST_F(NfsMounts, ItIsReadAtMostOnceASecond) {
  WriteHome();
  Make(2);
  Sample();
  Write(MountStats("server:/home", "/home", "0 0 0 0 9 0 0 0", ""), HomeInfo());
  Sample(100 * kMillisecond);
  EXPECT_EQ(Get("node_nfs_server_read_bytes_total"), 5000);
  Sample(900 * kMillisecond);
  EXPECT_EQ(Get("node_nfs_server_read_bytes_total"), 9);
}

TEST_F(NfsMounts, OnlySoManyMountsAreShownByThemselves) {
  std::string stats;
  std::string info;
  for (int i = 0; i < 70; ++i) {
    stats += MountStats(fmt::format("s:/{}", i), fmt::format("/m{}", i), "0 0 0 0 1 0 0 0", "");
    info += fmt::format("{0} 1 0:{0} / /m{0} rw - nfs4 s:/{0} rw\n", i);
  }
  Write(stats, info);
  Make(4);
  Sample();
  EXPECT_EQ(source_->series().size(), 12u + 64 * 38);
  EXPECT_EQ(Get("node_nfs_server_read_bytes_total"), 70);
  EXPECT_EQ(source_->TakeNotes().size(), 1u);
}

TEST_F(NfsMounts, AWarmTickAllocatesNothing) {
  for (const bool mounted : {true, false}) {
    if (mounted) {
      WriteHome();
    } else {
      Write(kOthers, "");
    }
    Make(4);
    Sample();
    const size_t before = allocations;
    for (int i = 0; i < 200; ++i) Sample();
    EXPECT_EQ(allocations, before) << mounted;
  }
}

TEST(NfsMountstats, TimesThatRanBackwardsAreMissing) {
  const std::string text = MountStats("s:/", "/x", "1 2 3 4 5 6 7 8",
                                      "\tACCESS: 5 6 0 7 8 18446743919241604546 1667 1953\n");
  Cursor at(text);
  NfsMount mount;
  ASSERT_TRUE(TakeNfsMount(at, mount));
  EXPECT_EQ(mount.device, "s:/");
  EXPECT_EQ(mount.point, "/x");
  EXPECT_EQ(mount.calls[kNfsMetadata].calls, 5);
  EXPECT_THAT(mount.calls[kNfsMetadata].queue_seconds, IsNan());
  EXPECT_DOUBLE_EQ(mount.calls[kNfsMetadata].answer_seconds, 1.667);
  EXPECT_FALSE(TakeNfsMount(at, mount));
}

TEST(NfsMountstats, WhatIsNotNfsIsPassedOver) {
  for (const std::string_view text :
       {"", "\n", "device", "device a mounted on", "device a mounted on /b with fstype ext4\n",
        "device a mounted on /b with fstype nfs\n", "bytes: 1 2 3\nper-op statistics\nREAD: 1\n",
        "no device mounted on /x with fstype nfs statvers=1.1\n"}) {
    Cursor at(text);
    NfsMount mount;
    EXPECT_FALSE(TakeNfsMount(at, mount)) << text;
  }
}

}  // namespace
}  // namespace sonde::collect::collect_nfs_test
