// /proc/net/snmp and /proc/net/netstat of kernels old and new, cut short and not what they should
// be.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/sampler.h"
#include "tests/unit/collect_tree.h"

namespace sonde::collect::collect_tcp_test {
namespace {

using testing::IsNan;

// `icmp` is a part that grows while a kernel runs.
std::string SnmpText(std::string_view icmp, std::string_view resent) {
  return "Ip: Forwarding DefaultTTL InReceives\nIp: 2 64 7509621\n" + std::string(icmp) +
         "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails "
         "EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\n"
         "Tcp: 1 200 120000 -1 335130 331157 3938 22902 17 7508315 7504349 " +
         std::string(resent) +
         " 5 24541 0\n"
         "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors "
         "IgnoredMulti MemErrors\nUdp: 1336 120 11 1338 9 8 2 0 1\n"
         "UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdpLite: 70 71 72 73 "
         "74\n";
}
constexpr std::string_view kIcmp = "IcmpMsg: InType3\nIcmpMsg: 2\n";
constexpr std::string_view kNetstat =
    "TcpExt: SyncookiesSent PruneCalled ListenOverflows ListenDrops TCPTimeouts TCPRcvQDrop\n"
    "TcpExt: 1 2 40 41 115 131\n"
    "IpExt: InNoRoutes InOctets\nIpExt: 0 6286396970\n"
    "MPTcpExt: MPCapableSYNRX ListenDrops\nMPTcpExt: 0 99\n";

class Tcp : public testing::Test {
 protected:
  void Sample(FileSource& source, std::string_view text) {
    tree_.Write("proc/net/snmp", text);
    source.Sample(now_ += 100 * kSecond);
  }

  Tree tree_;
  ReadBuffer buffer_;
  Nanos now_ = kSecond;
};

TEST_F(Tcp, ValuesStandBelowTheirNames) {
  const auto source = MakeSnmpSource(tree_.roots(), 4, buffer_);
  Sample(*source, SnmpText(kIcmp, "628"));
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_InSegs_total"), 7508315);
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_OutSegs_total"), 7504349);
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_RetransSegs_total"), 628);
  EXPECT_EQ(Value(*source, "node_netstat_Udp_RcvbufErrors_total"), 9);
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_OutRsts_total"), 24541);
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_CurrEstab"), 17);
  EXPECT_EQ(Value(*source, "node_netstat_Udp_InErrors_total"), 11);
  EXPECT_EQ(Value(*source, "node_netstat_Udp_MemErrors_total"), 1);
}

TEST_F(Tcp, ListenDropsAreThoseOfTcp) {
  tree_.Write("proc/net/netstat", kNetstat);
  const auto source = MakeNetstatSource(tree_.roots(), 4, buffer_);
  source->Sample(now_);
  EXPECT_EQ(Value(*source, "node_netstat_TcpExt_ListenDrops_total"), 41);
  EXPECT_EQ(Value(*source, "node_netstat_TcpExt_ListenOverflows_total"), 40);
  EXPECT_EQ(Value(*source, "node_netstat_TcpExt_TCPTimeouts_total"), 115);
  EXPECT_EQ(Value(*source, "node_netstat_TcpExt_TCPRcvQDrop_total"), 131);
  EXPECT_EQ(Value(*source, "node_netstat_TcpExt_PruneCalled_total"), 2);
}

TEST_F(Tcp, OldKernelsHaveFewerNames) {
  const auto source = MakeSnmpSource(tree_.roots(), 4, buffer_);
  Sample(*source,
         "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens InSegs OutSegs RetransSegs\n"
         "Tcp: 1 200 120000 -1 3556 57252008 54915039 227\n"
         "Udp: InDatagrams NoPorts InErrors OutDatagrams\nUdp: 88542 120 0 53028\n");
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_RetransSegs_total"), 227);
  EXPECT_EQ(Value(*source, "node_netstat_Udp_OutDatagrams_total"), 53028);
  EXPECT_FALSE(Has(*source, "node_netstat_Udp_RcvbufErrors_total"));
}

TEST_F(Tcp, LinesOfOtherProtocolsMayChange) {
  const auto source = MakeSnmpSource(tree_.roots(), 4, buffer_);
  Sample(*source, SnmpText("", "628"));
  const uint32_t generation = source->generation();
  Sample(*source, SnmpText(kIcmp, "629"));
  Sample(*source, SnmpText("IcmpMsg: InType3 OutType3\nIcmpMsg: 104 120\n", "6300"));
  EXPECT_EQ(source->generation(), generation);
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_RetransSegs_total"), 6300);
}

TEST_F(Tcp, NamesThatChangeAreFoundAgain) {
  const auto source = MakeSnmpSource(tree_.roots(), 4, buffer_);
  Sample(*source, SnmpText(kIcmp, "628"));
  Sample(*source, "Tcp: RetransSegs InSegs\nTcp: 5 6\n");
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_RetransSegs_total"), 5);
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_InSegs_total"), 6);
  Sample(*source, SnmpText(kIcmp, "629"));
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_RetransSegs_total"), 629);
  EXPECT_EQ(Value(*source, "node_netstat_Udp_RcvbufErrors_total"), 9);
}

TEST_F(Tcp, ATextCutShortGivesNoHalfNumbers) {
  const std::string text = SnmpText(kIcmp, "628");
  for (size_t size = 0; size < text.size(); ++size) {
    const auto source = MakeSnmpSource(tree_.roots(), 4, buffer_);
    source->Parse(text);
    const std::vector<double> whole(source->values().begin(), source->values().end());
    const uint32_t generation = source->generation();
    source->Parse(std::string_view(text).substr(0, size));
    EXPECT_EQ(source->generation(), generation) << size;
    for (size_t i = 0; i < whole.size(); ++i) {
      const double value = source->values()[i];
      EXPECT_TRUE(std::isnan(value) || value == whole[i]) << size << ": " << i;
    }
  }
}

TEST_F(Tcp, HostileTextGivesMissingValues) {
  const auto source = MakeSnmpSource(tree_.roots(), 4, buffer_);
  Sample(*source,
         "Tcp: InSegs OutSegs RetransSegs InSegs\nTcp: -5 99999999999999999999 7x 8\n"
         "Tcp: InSegs\nTcp: 9\nUdp: RcvbufErrors NoPorts\nUdp:\n");
  EXPECT_THAT(Value(*source, "node_netstat_Tcp_InSegs_total"), IsNan());
  EXPECT_THAT(Value(*source, "node_netstat_Tcp_OutSegs_total"), IsNan());
  EXPECT_THAT(Value(*source, "node_netstat_Tcp_RetransSegs_total"), IsNan());
  EXPECT_THAT(Value(*source, "node_netstat_Udp_RcvbufErrors_total"), IsNan());
  EXPECT_EQ(source->series().size(), 5u);
  // Values of another protocol than the names.
  Sample(*source, "Tcp: InSegs\nUdp: 5\n");
  EXPECT_THAT(Value(*source, "node_netstat_Tcp_InSegs_total"), IsNan());
}

TEST_F(Tcp, FilesThatAreNotThereGiveNothingUntilTheyAre) {
  const auto source = MakeSnmpSource(tree_.roots(), 4, buffer_);
  source->Sample(now_);
  EXPECT_TRUE(source->series().empty());
  EXPECT_TRUE(source->TakeNotes().empty());
  Sample(*source, SnmpText(kIcmp, "628"));
  Sample(*source, "");
  EXPECT_THAT(Value(*source, "node_netstat_Tcp_InSegs_total"), IsNan());
  Sample(*source, SnmpText(kIcmp, "629"));
  EXPECT_EQ(Value(*source, "node_netstat_Tcp_RetransSegs_total"), 629);
}

TEST_F(Tcp, MemoryPressureLastsInSeconds) {
  const auto source = MakeNetstatSource(tree_.roots(), 2, buffer_);
  source->Parse("TcpExt: TCPMemoryPressures TCPMemoryPressuresChrono\nTcpExt: 2 1500\n");
  EXPECT_EQ(Value(*source, "node_netstat_TcpExt_TCPMemoryPressures_total"), 2);
  EXPECT_EQ(Value(*source, "node_netstat_TcpExt_TCPMemoryPressuresChrono_seconds_total"), 1.5);
}

TEST_F(Tcp, LevelTwoHasWhatGoesWrongAndLevelFourTheRest) {
  const std::string_view text =
      "TcpExt: SyncookiesSent ListenDrops TCPTimeouts TCPKeepAlive\nTcpExt: 1 2 3 4\n"
      "IpExt: InMcastPkts InOctets\nIpExt: 5 6\n";
  const auto two = MakeNetstatSource(tree_.roots(), 2, buffer_);
  two->Parse(text);
  EXPECT_EQ(two->series().size(), 3u);
  EXPECT_EQ(Value(*two, "node_netstat_TcpExt_TCPTimeouts_total"), 3);
  EXPECT_EQ(Value(*two, "node_netstat_IpExt_InOctets_bytes_total"), 6);
  const auto four = MakeNetstatSource(tree_.roots(), 4, buffer_);
  four->Parse(text);
  EXPECT_EQ(four->series().size(), 6u);
  EXPECT_EQ(Value(*four, "node_netstat_TcpExt_TCPKeepAlive_total"), 4);
}

TEST_F(Tcp, SocketsAreCountedAndTheirMemoryIsInBytes) {
  const auto source = MakeSockstatSource(tree_.roots(), 2, buffer_);
  const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
  source->Parse(
      "sockets: used 229\nTCP: inuse 4 orphan 1 tw 5 alloc 17 mem 3\nUDP: inuse 2 mem 9\n"
      "RAW: inuse 7\n");
  EXPECT_EQ(Value(*source, "node_sockstat_sockets_used"), 229);
  EXPECT_EQ(Value(*source, "node_sockstat_TCP_inuse"), 4);
  EXPECT_EQ(Value(*source, "node_sockstat_TCP_orphan"), 1);
  EXPECT_EQ(Value(*source, "node_sockstat_TCP_tw"), 5);
  EXPECT_EQ(Value(*source, "node_sockstat_TCP_alloc"), 17);
  EXPECT_EQ(Value(*source, "node_sockstat_TCP_mem_bytes"), 3 * page);
  EXPECT_EQ(Value(*source, "node_sockstat_UDP_mem_bytes"), 9 * page);
  EXPECT_FALSE(Has(*source, "node_sockstat_RAW_inuse"));
  source->Parse("TCP: inuse 4 orphan\nTCP: tw -5 alloc 7x mem 99999999999999999999\nUDP: inuse 2");
  EXPECT_EQ(Value(*source, "node_sockstat_TCP_inuse"), 4);
  for (const std::string_view name :
       {"TCP_orphan", "TCP_tw", "TCP_alloc", "TCP_mem_bytes", "UDP_inuse"}) {
    EXPECT_THAT(Value(*source, fmt::format("node_sockstat_{}", name)), IsNan()) << name;
  }
}

TEST_F(Tcp, Version6HasAFileOfItsOwn) {
  const auto source = MakeSnmp6Source(tree_.roots(), 2, buffer_);
  source->Parse(
      "Ip6InReceives                   \t12\nIp6InOctets                     \t3456\n"
      "Ip6InNoRoutes                   \t7\nUdp6InErrors                    \t8\n");
  EXPECT_EQ(Value(*source, "node_netstat_Ip6_InReceives_total"), 12);
  EXPECT_EQ(Value(*source, "node_netstat_Ip6_InOctets_bytes_total"), 3456);
  EXPECT_EQ(Value(*source, "node_netstat_Udp6_InErrors_total"), 8);
  EXPECT_EQ(source->series().size(), 3u);
}

TEST_F(Tcp, CountersCountFromTheStepsStart) {
  Sampler sampler({.level = 4, .events = "", .roots = tree_.roots()});
  const auto resent = [&](std::string_view count) {
    tree_.Write("proc/net/snmp", SnmpText(kIcmp, count));
    sampler.Sample(now_ += kSecond);
    return sampler.row(Group::kOs)[Find(sampler.schema(Group::kOs)->series(),
                                        "node_netstat_Tcp_RetransSegs_total")];
  };
  EXPECT_EQ(resent("628"), 0);
  EXPECT_EQ(resent("630"), 2);
  EXPECT_EQ(resent("4"), 2);
  EXPECT_EQ(resent("5"), 3);
}

}  // namespace
}  // namespace sonde::collect::collect_tcp_test
