// /proc/net/snmp: what IPv4, ICMP, TCP and UDP carried on the node, and what they lost.
#include "daemon/collect/os/net/protocols_source.h"
#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

constexpr std::string_view kIp = "Ip:";
constexpr std::string_view kIcmp = "Icmp:";
constexpr std::string_view kTcp = "Tcp:";
constexpr std::string_view kUdp = "Udp:";

// The names are node_exporter's, which are the kernel's, with _total. Meanings:
// Documentation/networking/snmp_counter.rst and RFC 1213.
constexpr ProtocolField kSnmpFields[] = {
    CountOf(kIp, "InReceives", "node_netstat_Ip_InReceives_total", 2,
            "IPv4 packets received, those dropped later included."),
    CountOf(kIp, "InDelivers", "node_netstat_Ip_InDelivers_total", 2,
            "IPv4 packets handed on to TCP, UDP and the like."),
    CountOf(kIp, "OutRequests", "node_netstat_Ip_OutRequests_total", 2,
            "IPv4 packets that TCP, UDP and the like wanted sent."),
    CountOf(kIp, "InHdrErrors", "node_netstat_Ip_InHdrErrors_total", 2,
            "IPv4 packets dropped for a bad header."),
    CountOf(kIp, "InAddrErrors", "node_netstat_Ip_InAddrErrors_total", 2,
            "IPv4 packets dropped because they are not for this node."),
    CountOf(kIp, "InDiscards", "node_netstat_Ip_InDiscards_total", 2,
            "IPv4 packets dropped when received though nothing is wrong with them, as for lack of "
            "memory."),
    CountOf(kIp, "OutDiscards", "node_netstat_Ip_OutDiscards_total", 2,
            "IPv4 packets dropped when sent though nothing is wrong with them."),
    CountOf(kIp, "OutNoRoutes", "node_netstat_Ip_OutNoRoutes_total", 2,
            "IPv4 packets not sent because no route leads to where they should go."),
    CountOf(kIp, "ReasmReqds", "node_netstat_Ip_ReasmReqds_total", 2,
            "Fragments of IPv4 packets received."),
    CountOf(kIp, "ReasmOKs", "node_netstat_Ip_ReasmOKs_total", 2,
            "IPv4 packets put together from fragments."),
    CountOf(kIp, "ReasmFails", "node_netstat_Ip_ReasmFails_total", 2,
            "Times fragments could not be put together: one was lost, or there was no room."),
    CountOf(kIp, "ReasmTimeout", "node_netstat_Ip_ReasmTimeout_total", 2,
            "Times a fragment was waited for in vain."),
    CountOf(kIp, "FragOKs", "node_netstat_Ip_FragOKs_total", 2,
            "IPv4 packets sent in fragments, being too large for the network."),
    CountOf(kIp, "FragFails", "node_netstat_Ip_FragFails_total", 2,
            "IPv4 packets too large for the network that may not be sent in fragments."),
    CountOf(kIp, "FragCreates", "node_netstat_Ip_FragCreates_total", 2,
            "Fragments of IPv4 packets made."),
    CountOf(kIp, "ForwDatagrams", "node_netstat_Ip_ForwDatagrams_total", 4,
            "IPv4 packets forwarded to other hosts."),
    CountOf(kIp, "InUnknownProtos", "node_netstat_Ip_InUnknownProtos_total", 4,
            "IPv4 packets of a protocol that nobody here handles."),
    CountOf(kIp, "OutTransmits", "node_netstat_Ip_OutTransmits_total", 4,
            "IPv4 packets handed to the network, fragments and those forwarded included."),
    CountOf(kIcmp, "InDestUnreachs", "node_netstat_Icmp_InDestUnreachs_total", 2,
            "Messages received that something sent from here could not be delivered."),
    CountOf(kIcmp, "OutDestUnreachs", "node_netstat_Icmp_OutDestUnreachs_total", 2,
            "Messages sent that something received could not be delivered, as nobody listened."),
    CountOf(kIcmp, "InTimeExcds", "node_netstat_Icmp_InTimeExcds_total", 2,
            "Messages received that something sent from here took too many hops or too long."),
    CountOf(kIcmp, "InErrors", "node_netstat_Icmp_InErrors_total", 4,
            "ICMP messages received that were bad or of no use."),
    CountOf(kIcmp, "InMsgs", "node_netstat_Icmp_InMsgs_total", 4, "ICMP messages received."),
    CountOf(kIcmp, "OutMsgs", "node_netstat_Icmp_OutMsgs_total", 4, "ICMP messages sent."),
    CountOf(kIcmp, "OutErrors", "node_netstat_Icmp_OutErrors_total", 4,
            "ICMP messages that could not be sent."),
    CountOf(kIcmp, "InCsumErrors", "node_netstat_Icmp_InCsumErrors_total", 4,
            "ICMP messages received with a wrong checksum."),
    CountOf(kIcmp, "OutRateLimitGlobal", "node_netstat_Icmp_OutRateLimitGlobal_total", 4,
            "ICMP messages not sent because the node sends too many."),
    CountOf(kIcmp, "OutRateLimitHost", "node_netstat_Icmp_OutRateLimitHost_total", 4,
            "ICMP messages not sent because the node sends too many to one host."),
    CountOf(kIcmp, "InParmProbs", "node_netstat_Icmp_InParmProbs_total", 4,
            "Messages received that a header sent from here was bad."),
    CountOf(kIcmp, "InRedirects", "node_netstat_Icmp_InRedirects_total", 4,
            "Messages received that another router is the right one."),
    CountOf(kIcmp, "InEchos", "node_netstat_Icmp_InEchos_total", 4, "Pings received."),
    CountOf(kIcmp, "InEchoReps", "node_netstat_Icmp_InEchoReps_total", 4,
            "Answers to pings received."),
    CountOf(kIcmp, "OutEchos", "node_netstat_Icmp_OutEchos_total", 4, "Pings sent."),
    CountOf(kIcmp, "OutEchoReps", "node_netstat_Icmp_OutEchoReps_total", 4,
            "Answers to pings sent."),
    CountOf(kTcp, "InSegs", "node_netstat_Tcp_InSegs_total", 2, "TCP segments received."),
    CountOf(kTcp, "OutSegs", "node_netstat_Tcp_OutSegs_total", 2,
            "TCP segments sent, without those sent again."),
    CountOf(kTcp, "RetransSegs", "node_netstat_Tcp_RetransSegs_total", 2,
            "TCP segments sent again: the network loses packets or is overloaded."),
    CountOf(kTcp, "ActiveOpens", "node_netstat_Tcp_ActiveOpens_total", 2,
            "TCP connections begun from here."),
    CountOf(kTcp, "PassiveOpens", "node_netstat_Tcp_PassiveOpens_total", 2,
            "TCP connections begun from elsewhere."),
    CountOf(kTcp, "AttemptFails", "node_netstat_Tcp_AttemptFails_total", 2,
            "TCP connections that did not come about."),
    CountOf(kTcp, "EstabResets", "node_netstat_Tcp_EstabResets_total", 2,
            "TCP connections that were cut off."),
    {kTcp,
     "CurrEstab",
     {"node_netstat_Tcp_CurrEstab", "1", MetricType::kGauge, 2, Reduction::kSum,
      "TCP connections that exist."}},
    CountOf(kTcp, "InErrs", "node_netstat_Tcp_InErrs_total", 2,
            "TCP segments received with an error, wrong checksums included."),
    CountOf(kTcp, "InCsumErrors", "node_netstat_Tcp_InCsumErrors_total", 2,
            "TCP segments received with a wrong checksum."),
    CountOf(kTcp, "OutRsts", "node_netstat_Tcp_OutRsts_total", 2,
            "TCP segments sent that refuse or cut off a connection."),
    CountOf(kUdp, "RcvbufErrors", "node_netstat_Udp_RcvbufErrors_total", 2,
            "UDP datagrams lost because a socket's receive buffer was full."),
    CountOf(kUdp, "InErrors", "node_netstat_Udp_InErrors_total", 2,
            "UDP datagrams lost when received, for whatever reason: RcvbufErrors included."),
    CountOf(kUdp, "InDatagrams", "node_netstat_Udp_InDatagrams_total", 2,
            "UDP datagrams received."),
    CountOf(kUdp, "OutDatagrams", "node_netstat_Udp_OutDatagrams_total", 2, "UDP datagrams sent."),
    CountOf(kUdp, "NoPorts", "node_netstat_Udp_NoPorts_total", 2,
            "UDP datagrams for a port on which nobody listened."),
    CountOf(kUdp, "SndbufErrors", "node_netstat_Udp_SndbufErrors_total", 2,
            "UDP datagrams not sent because a send buffer was full."),
    CountOf(kUdp, "InCsumErrors", "node_netstat_Udp_InCsumErrors_total", 2,
            "UDP datagrams received with a wrong checksum."),
    CountOf(kUdp, "MemErrors", "node_netstat_Udp_MemErrors_total", 2,
            "UDP datagrams lost because all of UDP had used up its memory."),
    CountOf(kUdp, "IgnoredMulti", "node_netstat_Udp_IgnoredMulti_total", 4,
            "UDP multicast datagrams for groups that nobody here joined."),
};

}  // namespace

std::unique_ptr<FileSource> MakeSnmpSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<ProtocolsSource>("snmp", roots.proc + "/net/snmp",
                                           std::vector<std::span<const ProtocolField>>{kSnmpFields},
                                           level, buffer);
}

std::vector<MetricDecl> SnmpMetrics() { return DeclarationsOf(kSnmpFields); }

}  // namespace sonde::collect
