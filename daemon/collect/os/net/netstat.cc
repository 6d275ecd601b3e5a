// /proc/net/netstat: how TCP fared on the node, both versions of IP together, and what else IPv4
// counts.
//
// Level 2 has what tells that connections are slow, stuck or cut off, and why: segments lost, out
// of order or dropped, timeouts, full buffers and queues, lack of memory. What else the kernel
// counts is in netstat_details.cc.
#include "daemon/collect/os/net/netstat_fields.h"
#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

using netstat_fields::kIpExt;
using netstat_fields::kTcpExt;

// The names are node_exporter's, which are the kernel's, with unit and _total. Meanings:
// Documentation/networking/snmp_counter.rst.
constexpr ProtocolField kNetstatFields[] = {
    CountOf(kTcpExt, "ListenDrops", "node_netstat_TcpExt_ListenDrops_total", 2,
            "TCP connections from elsewhere that were dropped before a program took them, for "
            "whatever reason."),
    CountOf(kTcpExt, "ListenOverflows", "node_netstat_TcpExt_ListenOverflows_total", 2,
            "Those of them that came faster than the program took them: the queue given to "
            "listen() was full."),
    CountOf(kTcpExt, "TCPReqQFullDrop", "node_netstat_TcpExt_TCPReqQFullDrop_total", 2,
            "Requests for a TCP connection dropped because too many were half open."),
    CountOf(kTcpExt, "TCPTimeouts", "node_netstat_TcpExt_TCPTimeouts_total", 2,
            "Times TCP waited in vain for an answer, and sent again: each costs 0.2 s or more."),
    CountOf(kTcpExt, "TCPSpuriousRTOs", "node_netstat_TcpExt_TCPSpuriousRTOs_total", 2,
            "Timeouts that came too early: nothing was lost."),
    CountOf(kTcpExt, "TCPLossProbes", "node_netstat_TcpExt_TCPLossProbes_total", 2,
            "Segments sent again early to find out whether the last ones were lost."),
    CountOf(kTcpExt, "TCPLossProbeRecovery", "node_netstat_TcpExt_TCPLossProbeRecovery_total", 2,
            "Losses that such a probe made good without a timeout."),
    CountOf(kTcpExt, "TCPOrigDataSent", "node_netstat_TcpExt_TCPOrigDataSent_total", 2,
            "TCP segments with data sent for the first time: what those sent again compare to."),
    CountOf(kTcpExt, "TCPDelivered", "node_netstat_TcpExt_TCPDelivered_total", 2,
            "TCP segments with data that the other side confirmed."),
    CountOf(kTcpExt, "TCPDeliveredCE", "node_netstat_TcpExt_TCPDeliveredCE_total", 2,
            "Those of them that a congested switch had marked."),
    CountOf(kTcpExt, "TCPFastRetrans", "node_netstat_TcpExt_TCPFastRetrans_total", 2,
            "TCP segments sent again without waiting for a timeout."),
    CountOf(kTcpExt, "TCPSlowStartRetrans", "node_netstat_TcpExt_TCPSlowStartRetrans_total", 2,
            "TCP segments sent again after a timeout, slowly at first."),
    CountOf(kTcpExt, "TCPLostRetransmit", "node_netstat_TcpExt_TCPLostRetransmit_total", 2,
            "TCP segments that were sent again and lost again."),
    CountOf(kTcpExt, "TCPSynRetrans", "node_netstat_TcpExt_TCPSynRetrans_total", 2,
            "Requests for a TCP connection, and answers to them, sent again."),
    CountOf(kTcpExt, "TCPRetransFail", "node_netstat_TcpExt_TCPRetransFail_total", 2,
            "TCP segments that could not be sent again because the network below refused them."),
    CountOf(kTcpExt, "TCPSpuriousRtxHostQueues",
            "node_netstat_TcpExt_TCPSpuriousRtxHostQueues_total", 2,
            "TCP segments not sent again because they still waited in this node's own queues."),
    CountOf(kTcpExt, "TCPSackRecovery", "node_netstat_TcpExt_TCPSackRecovery_total", 2,
            "Times a connection noticed a loss and slowed down, told by selective acknowledgement "
            "(SACK)."),
    CountOf(kTcpExt, "TCPRenoRecovery", "node_netstat_TcpExt_TCPRenoRecovery_total", 2,
            "The same on connections without SACK."),
    CountOf(kTcpExt, "TCPSackRecoveryFail", "node_netstat_TcpExt_TCPSackRecoveryFail_total", 2,
            "Times making good a loss ended in a timeout."),
    CountOf(kTcpExt, "TCPSackFailures", "node_netstat_TcpExt_TCPSackFailures_total", 2,
            "Timeouts while a loss was being made good."),
    CountOf(kTcpExt, "TCPLossFailures", "node_netstat_TcpExt_TCPLossFailures_total", 2,
            "Timeouts while the one before was being made good."),
    CountOf(kTcpExt, "TCPSACKReneging", "node_netstat_TcpExt_TCPSACKReneging_total", 2,
            "Times a receiver dropped what it had confirmed, having no room."),
    CountOf(kTcpExt, "TCPSACKReorder", "node_netstat_TcpExt_TCPSACKReorder_total", 2,
            "Times segments were seen to arrive in another order than they were sent."),
    CountOf(kTcpExt, "TCPTSReorder", "node_netstat_TcpExt_TCPTSReorder_total", 2,
            "The same, told by timestamps."),
    CountOf(kTcpExt, "TCPDSACKRecv", "node_netstat_TcpExt_TCPDSACKRecv_total", 2,
            "Times the other side had got a segment twice: it was sent again for nothing."),
    CountOf(kTcpExt, "TCPDSACKOldSent", "node_netstat_TcpExt_TCPDSACKOldSent_total", 2,
            "Times this node had got a segment twice."),
    CountOf(kTcpExt, "TCPOFOQueue", "node_netstat_TcpExt_TCPOFOQueue_total", 2,
            "TCP segments received out of order, and kept until those before them came."),
    CountOf(kTcpExt, "TCPOFODrop", "node_netstat_TcpExt_TCPOFODrop_total", 2,
            "TCP segments received out of order and dropped for lack of memory."),
    CountOf(kTcpExt, "OfoPruned", "node_netstat_TcpExt_OfoPruned_total", 2,
            "Times kept segments out of order were dropped to make room."),
    CountOf(kTcpExt, "PruneCalled", "node_netstat_TcpExt_PruneCalled_total", 2,
            "Times a TCP socket's receive buffer was squeezed, being full."),
    CountOf(kTcpExt, "RcvPruned", "node_netstat_TcpExt_RcvPruned_total", 2,
            "Times that did not help and segments were dropped."),
    CountOf(kTcpExt, "TCPRcvCollapsed", "node_netstat_TcpExt_TCPRcvCollapsed_total", 2,
            "TCP segments put together in a full receive buffer to make room."),
    CountOf(kTcpExt, "TCPRcvQDrop", "node_netstat_TcpExt_TCPRcvQDrop_total", 2,
            "TCP segments dropped because a socket's receive queue was full."),
    CountOf(kTcpExt, "TCPBacklogDrop", "node_netstat_TcpExt_TCPBacklogDrop_total", 2,
            "TCP segments dropped because a socket in use had too many waiting."),
    CountOf(kTcpExt, "TCPZeroWindowDrop", "node_netstat_TcpExt_TCPZeroWindowDrop_total", 2,
            "TCP segments dropped that came though the other side was told there is no room."),
    CountOf(kTcpExt, "TCPToZeroWindowAdv", "node_netstat_TcpExt_TCPToZeroWindowAdv_total", 2,
            "Times the other side was told to stop: a program here does not read fast enough."),
    CountOf(kTcpExt, "TCPFromZeroWindowAdv", "node_netstat_TcpExt_TCPFromZeroWindowAdv_total", 2,
            "Times it was told to go on."),
    CountOf(kTcpExt, "TCPWantZeroWindowAdv", "node_netstat_TcpExt_TCPWantZeroWindowAdv_total", 2,
            "Times it should have been told to stop but had been promised room."),
    CountOf(kTcpExt, "TCPWqueueTooBig", "node_netstat_TcpExt_TCPWqueueTooBig_total", 2,
            "TCP segments not split because their socket's send queue was too long."),
    CountOf(kTcpExt, "TCPMemoryPressures", "node_netstat_TcpExt_TCPMemoryPressures_total", 2,
            "Times TCP came near the memory it may use (tcp_mem)."),
    {kTcpExt,
     "TCPMemoryPressuresChrono",
     {"node_netstat_TcpExt_TCPMemoryPressuresChrono_seconds_total", "seconds", MetricType::kCounter,
      2, Reduction::kSum, "How long it was near it."},
     1e-3},
    CountOf(kTcpExt, "PFMemallocDrop", "node_netstat_TcpExt_PFMemallocDrop_total", 2,
            "Packets dropped because they had taken memory kept for emergencies."),
    CountOf(kTcpExt, "TCPAbortOnTimeout", "node_netstat_TcpExt_TCPAbortOnTimeout_total", 2,
            "TCP connections given up after too many timeouts."),
    CountOf(kTcpExt, "TCPAbortOnMemory", "node_netstat_TcpExt_TCPAbortOnMemory_total", 2,
            "TCP connections cut off for lack of memory."),
    CountOf(kTcpExt, "TCPAbortOnData", "node_netstat_TcpExt_TCPAbortOnData_total", 2,
            "TCP connections cut off because data came after they were closed."),
    CountOf(kTcpExt, "TCPAbortOnClose", "node_netstat_TcpExt_TCPAbortOnClose_total", 2,
            "TCP connections cut off because a program closed them with data unread."),
    CountOf(kTcpExt, "TCPTimeWaitOverflow", "node_netstat_TcpExt_TCPTimeWaitOverflow_total", 2,
            "Closed TCP connections forgotten early because there were too many."),
    BytesOf(kIpExt, "InOctets", "node_netstat_IpExt_InOctets_bytes_total", 2,
            "Bytes received in IPv4 packets, their headers included."),
    BytesOf(kIpExt, "OutOctets", "node_netstat_IpExt_OutOctets_bytes_total", 2,
            "Bytes sent in IPv4 packets, their headers included."),
    CountOf(kIpExt, "InNoRoutes", "node_netstat_IpExt_InNoRoutes_total", 2,
            "IPv4 packets received that no route leads on from here."),
    CountOf(kIpExt, "InTruncatedPkts", "node_netstat_IpExt_InTruncatedPkts_total", 2,
            "IPv4 packets shorter than their header says."),
    CountOf(kIpExt, "InCsumErrors", "node_netstat_IpExt_InCsumErrors_total", 2,
            "IPv4 packets received with a wrong checksum of their header."),
    CountOf(kIpExt, "InCEPkts", "node_netstat_IpExt_InCEPkts_total", 2,
            "IPv4 packets received that a congested switch has marked."),
};

}  // namespace

std::unique_ptr<FileSource> MakeNetstatSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<ProtocolsSource>(
      "netstat", roots.proc + "/net/netstat",
      std::vector<std::span<const ProtocolField>>{kNetstatFields, netstat_fields::kDetails}, level,
      buffer);
}

std::vector<MetricDecl> NetstatMetrics() {
  return DeclarationsOf(kNetstatFields, netstat_fields::kDetails);
}

}  // namespace sonde::collect
