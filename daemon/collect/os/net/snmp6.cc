// /proc/net/snmp6: what IPv6 and UDP over it carried on the node, and what they lost. TCP counts
// both versions of IP in /proc/net/snmp.
#include "daemon/collect/os/key_value_source.h"
#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

constexpr KeyField Snmp6Count(std::string_view key, std::string_view name, uint8_t level,
                              std::string_view help) {
  return {key, {name, "1", MetricType::kCounter, level, Reduction::kSum, help}};
}
constexpr KeyField Bytes(std::string_view key, std::string_view name, uint8_t level,
                         std::string_view help) {
  return {key, {name, "bytes", MetricType::kCounter, level, Reduction::kSum, help}};
}

// The names are node_exporter's, which are the kernel's, with unit and _total.
constexpr KeyField kSnmp6Fields[] = {
    Snmp6Count("Ip6InReceives", "node_netstat_Ip6_InReceives_total", 2,
               "IPv6 packets received, those dropped later included."),
    Snmp6Count("Ip6InDelivers", "node_netstat_Ip6_InDelivers_total", 2,
               "IPv6 packets handed on to TCP, UDP and the like."),
    Snmp6Count("Ip6OutRequests", "node_netstat_Ip6_OutRequests_total", 2,
               "IPv6 packets that TCP, UDP and the like wanted sent."),
    Bytes("Ip6InOctets", "node_netstat_Ip6_InOctets_bytes_total", 2,
          "Bytes received in IPv6 packets, their headers included."),
    Bytes("Ip6OutOctets", "node_netstat_Ip6_OutOctets_bytes_total", 2,
          "Bytes sent in IPv6 packets, their headers included."),
    Snmp6Count("Ip6InHdrErrors", "node_netstat_Ip6_InHdrErrors_total", 2,
               "IPv6 packets dropped for a bad header."),
    Snmp6Count("Ip6InTooBigErrors", "node_netstat_Ip6_InTooBigErrors_total", 2,
               "IPv6 packets dropped for being too large for the way they had to go."),
    Snmp6Count(
        "Ip6InDiscards", "node_netstat_Ip6_InDiscards_total", 2,
        "IPv6 packets dropped when received though nothing is wrong with them, as for lack of "
        "memory."),
    Snmp6Count("Ip6OutDiscards", "node_netstat_Ip6_OutDiscards_total", 2,
               "IPv6 packets dropped when sent though nothing is wrong with them."),
    Snmp6Count("Ip6OutNoRoutes", "node_netstat_Ip6_OutNoRoutes_total", 2,
               "IPv6 packets not sent because no route leads to where they should go."),
    Snmp6Count("Ip6ReasmReqds", "node_netstat_Ip6_ReasmReqds_total", 2,
               "Fragments of IPv6 packets received."),
    Snmp6Count("Ip6ReasmFails", "node_netstat_Ip6_ReasmFails_total", 2,
               "Times fragments could not be put together: one was lost, or there was no room."),
    Snmp6Count("Ip6FragFails", "node_netstat_Ip6_FragFails_total", 2,
               "IPv6 packets too large for the network that may not be sent in fragments."),
    Snmp6Count("Ip6FragCreates", "node_netstat_Ip6_FragCreates_total", 2,
               "Fragments of IPv6 packets made."),
    Snmp6Count("Ip6InNoRoutes", "node_netstat_Ip6_InNoRoutes_total", 4,
               "IPv6 packets received that no route leads on from here."),
    Snmp6Count("Ip6InAddrErrors", "node_netstat_Ip6_InAddrErrors_total", 4,
               "IPv6 packets dropped because they are not for this node."),
    Snmp6Count("Ip6InUnknownProtos", "node_netstat_Ip6_InUnknownProtos_total", 4,
               "IPv6 packets of a protocol that nobody here handles."),
    Snmp6Count("Ip6InTruncatedPkts", "node_netstat_Ip6_InTruncatedPkts_total", 4,
               "IPv6 packets shorter than their header says."),
    Snmp6Count("Ip6OutForwDatagrams", "node_netstat_Ip6_OutForwDatagrams_total", 4,
               "IPv6 packets forwarded to other hosts."),
    Snmp6Count("Ip6OutTransmits", "node_netstat_Ip6_OutTransmits_total", 4,
               "IPv6 packets handed to the network, fragments and those forwarded included."),
    Snmp6Count("Ip6ReasmTimeout", "node_netstat_Ip6_ReasmTimeout_total", 4,
               "Times a fragment was waited for in vain."),
    Snmp6Count("Ip6ReasmOKs", "node_netstat_Ip6_ReasmOKs_total", 4,
               "IPv6 packets put together from fragments."),
    Snmp6Count("Ip6FragOKs", "node_netstat_Ip6_FragOKs_total", 4,
               "IPv6 packets sent in fragments, being too large for the network."),
    Snmp6Count("Ip6InMcastPkts", "node_netstat_Ip6_InMcastPkts_total", 4,
               "IPv6 multicast packets received."),
    Snmp6Count("Ip6OutMcastPkts", "node_netstat_Ip6_OutMcastPkts_total", 4,
               "IPv6 multicast packets sent."),
    Bytes("Ip6InMcastOctets", "node_netstat_Ip6_InMcastOctets_bytes_total", 4,
          "Bytes received in IPv6 multicast packets."),
    Bytes("Ip6OutMcastOctets", "node_netstat_Ip6_OutMcastOctets_bytes_total", 4,
          "Bytes sent in IPv6 multicast packets."),
    Snmp6Count("Ip6InNoECTPkts", "node_netstat_Ip6_InNoECTPkts_total", 4,
               "IPv6 packets received whose sender does not heed congestion marks."),
    Snmp6Count("Ip6InECT1Pkts", "node_netstat_Ip6_InECT1Pkts_total", 4,
               "IPv6 packets received whose sender heeds congestion marks (ECT 1)."),
    Snmp6Count("Ip6InECT0Pkts", "node_netstat_Ip6_InECT0Pkts_total", 4,
               "IPv6 packets received whose sender heeds congestion marks (ECT 0)."),
    Snmp6Count("Ip6InCEPkts", "node_netstat_Ip6_InCEPkts_total", 4,
               "IPv6 packets received that a congested switch has marked."),
    Snmp6Count("Icmp6InMsgs", "node_netstat_Icmp6_InMsgs_total", 4, "ICMPv6 messages received."),
    Snmp6Count("Icmp6InErrors", "node_netstat_Icmp6_InErrors_total", 4,
               "ICMPv6 messages received that were bad or of no use."),
    Snmp6Count("Icmp6OutMsgs", "node_netstat_Icmp6_OutMsgs_total", 4, "ICMPv6 messages sent."),
    Snmp6Count("Icmp6OutErrors", "node_netstat_Icmp6_OutErrors_total", 4,
               "ICMPv6 messages that could not be sent."),
    Snmp6Count("Icmp6InCsumErrors", "node_netstat_Icmp6_InCsumErrors_total", 4,
               "ICMPv6 messages received with a wrong checksum."),
    Snmp6Count("Icmp6InDestUnreachs", "node_netstat_Icmp6_InDestUnreachs_total", 4,
               "Messages received that something sent from here could not be delivered."),
    Snmp6Count("Icmp6InPktTooBigs", "node_netstat_Icmp6_InPktTooBigs_total", 4,
               "Messages received that something sent from here was too large for a network on its "
               "way."),
    Snmp6Count("Icmp6InTimeExcds", "node_netstat_Icmp6_InTimeExcds_total", 4,
               "Messages received that something sent from here took too many hops or too long."),
    Snmp6Count("Icmp6OutDestUnreachs", "node_netstat_Icmp6_OutDestUnreachs_total", 4,
               "Messages sent that something received could not be delivered."),
    Snmp6Count("Icmp6InNeighborSolicits", "node_netstat_Icmp6_InNeighborSolicits_total", 4,
               "Requests received for an address of this node's interfaces."),
    Snmp6Count("Icmp6OutNeighborSolicits", "node_netstat_Icmp6_OutNeighborSolicits_total", 4,
               "Requests sent for addresses of other interfaces."),
    Snmp6Count("Udp6InDatagrams", "node_netstat_Udp6_InDatagrams_total", 2,
               "UDP datagrams received over IPv6."),
    Snmp6Count("Udp6OutDatagrams", "node_netstat_Udp6_OutDatagrams_total", 2,
               "UDP datagrams sent over IPv6."),
    Snmp6Count("Udp6InErrors", "node_netstat_Udp6_InErrors_total", 2,
               "UDP datagrams lost when received over IPv6, for whatever reason: RcvbufErrors "
               "included."),
    Snmp6Count("Udp6RcvbufErrors", "node_netstat_Udp6_RcvbufErrors_total", 2,
               "UDP datagrams over IPv6 lost because a socket's receive buffer was full."),
    Snmp6Count("Udp6SndbufErrors", "node_netstat_Udp6_SndbufErrors_total", 2,
               "UDP datagrams over IPv6 not sent because a send buffer was full."),
    Snmp6Count("Udp6NoPorts", "node_netstat_Udp6_NoPorts_total", 4,
               "UDP datagrams over IPv6 for a port on which nobody listened."),
    Snmp6Count("Udp6InCsumErrors", "node_netstat_Udp6_InCsumErrors_total", 4,
               "UDP datagrams received over IPv6 with a wrong checksum."),
    Snmp6Count("Udp6MemErrors", "node_netstat_Udp6_MemErrors_total", 4,
               "UDP datagrams over IPv6 lost because all of UDP had used up its memory."),
};

class Snmp6Source final : public KeyValueSource {
 public:
  Snmp6Source(const Roots& roots, int level, ReadBuffer& buffer)
      : KeyValueSource(roots.proc + "/net/snmp6", Shape::kWhole, {kSnmp6Fields}, level, buffer) {}

  std::string_view name() const override { return "snmp6"; }
};

}  // namespace

std::unique_ptr<FileSource> MakeSnmp6Source(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<Snmp6Source>(roots, level, buffer);
}

std::vector<MetricDecl> Snmp6Metrics() { return DeclarationsOf(kSnmp6Fields); }

}  // namespace sonde::collect
