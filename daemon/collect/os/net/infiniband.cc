// /sys/class/infiniband/DEVICE/ports/PORT: traffic and errors of InfiniBand, RoCE and similar
// ports.
//
// Each counter is a file of its own, in counters/ (the fabric's, the same for all drivers) or in
// hw_counters/ (the driver's own). Many drivers ask the adapter for each file, so level 2 reads
// only those of traffic and errors. A port has series for the files that are there and hold a
// number; "N/A (no PMA)" is what a driver without counters writes.
#include <filesystem>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/read/directory.h"
#include "daemon/collect/read/number_files_source.h"

namespace sonde::collect {
namespace {

constexpr NumberField InfinibandCount(std::string_view file, std::string_view name, uint8_t level,
                                      std::string_view help) {
  return {file, 1, {name, "1", MetricType::kCounter, level, Reduction::kSum, help}};
}
constexpr NumberField Bytes(std::string_view file, double scale, std::string_view name,
                            std::string_view help) {
  return {file, scale, {name, "bytes", MetricType::kCounter, 2, Reduction::kSum, help}};
}

// PortRcvData and PortXmitData count words of 32 bits (InfiniBand Architecture Specification,
// volume 1, PortCounters, which also says where a counter stops: at the largest number of its 4, 8,
// 16 or 32 bits).
constexpr double kWordBytes = 4;
// hfi1, of Omni-Path, puts into them what its hardware counts: flits of 64 bits
// (pma_get_ib_portcounters_ext and C_DC_XMIT_FLITS in the kernel's hfi1/mad.c and chip.h).
constexpr std::string_view kFlitDriver = "hfi1";
constexpr double kFlitWords = 2;

// The names are node_exporter's, for the drivers' own counters the driver's.
constexpr NumberField kInfinibandFields[] = {
    Bytes(
        "counters/port_rcv_data", kWordBytes, "node_infiniband_port_data_received_bytes_total",
        "Bytes received. Where a driver has only 32-bit counters it stops at 16 GiB. Tags device, "
        "port."),
    Bytes("counters/port_xmit_data", kWordBytes,
          "node_infiniband_port_data_transmitted_bytes_total",
          "Bytes sent. Where a driver has only 32-bit counters it stops at 16 GiB. Tags device, "
          "port."),
    InfinibandCount(
        "counters/port_rcv_errors", "node_infiniband_port_errors_received_total", 2,
        "Packets received with an error; by the standard it stops at 65535. Tags device, port."),
    InfinibandCount(
        "counters/port_xmit_discards", "node_infiniband_port_discards_transmitted_total", 2,
        "Packets not sent because the port was down or congested; by the standard it stops at "
        "65535. Tags device, "
        "port."),
    InfinibandCount(
        "counters/symbol_error", "node_infiniband_symbol_error_total", 2,
        "Minor link errors on a lane: a cable or a plug that is bad; by the standard it stops at "
        "65535. Tags device, "
        "port."),
    InfinibandCount(
        "counters/link_error_recovery", "node_infiniband_link_error_recovery_total", 2,
        "Times the link went through error recovery and came back; by the standard it stops at "
        "255. Tags device, "
        "port."),
    InfinibandCount(
        "counters/link_downed", "node_infiniband_link_downed_total", 2,
        "Times the link did not come back and went down; by the standard it stops at 255. Tags "
        "device, port."),
    InfinibandCount(
        "counters/port_rcv_packets", "node_infiniband_port_packets_received_total", 4,
        "Packets received. Where a driver has only 32-bit counters it stops at 2^32-1. Tags "
        "device, port."),
    InfinibandCount(
        "counters/port_xmit_packets", "node_infiniband_port_packets_transmitted_total", 4,
        "Packets sent. Where a driver has only 32-bit counters it stops at 2^32-1. Tags device, "
        "port."),
    InfinibandCount(
        "counters/port_xmit_wait", "node_infiniband_port_transmit_wait_total", 4,
        "Ticks in which the port had data to send and was not allowed to: congestion; by "
        "the standard it stops at 2^32-1. Tags device, port."),
    InfinibandCount("counters/unicast_rcv_packets",
                    "node_infiniband_unicast_packets_received_total", 4,
                    "Unicast packets received. Tags device, port."),
    InfinibandCount("counters/unicast_xmit_packets",
                    "node_infiniband_unicast_packets_transmitted_total", 4,
                    "Unicast packets sent. Tags device, port."),
    InfinibandCount("counters/multicast_rcv_packets",
                    "node_infiniband_multicast_packets_received_total", 4,
                    "Multicast packets received. Tags device, port."),
    InfinibandCount("counters/multicast_xmit_packets",
                    "node_infiniband_multicast_packets_transmitted_total", 4,
                    "Multicast packets sent. Tags device, port."),
    InfinibandCount(
        "counters/port_rcv_constraint_errors",
        "node_infiniband_port_constraint_errors_received_total", 4,
        "Packets received and dropped by the port's rules, such as its partition; by the "
        "standard it stops at 255. "
        "Tags device, port."),
    InfinibandCount(
        "counters/port_xmit_constraint_errors",
        "node_infiniband_port_constraint_errors_transmitted_total", 4,
        "Packets not sent by the port's rules; by the standard it stops at 255. Tags device, "
        "port."),
    InfinibandCount(
        "counters/port_rcv_remote_physical_errors",
        "node_infiniband_port_receive_remote_physical_errors_total", 4,
        "Packets received that another port had marked as bad; by the standard it stops at "
        "65535. Tags device, "
        "port."),
    InfinibandCount(
        "counters/port_rcv_switch_relay_errors",
        "node_infiniband_port_receive_switch_relay_errors_total", 4,
        "Packets received that could not be passed on; by the standard it stops at 65535. Tags "
        "device, port."),
    InfinibandCount(
        "counters/local_link_integrity_errors", "node_infiniband_local_link_integrity_errors_total",
        4, "Times link errors came too often; by the standard it stops at 15. Tags device, port."),
    InfinibandCount(
        "counters/excessive_buffer_overrun_errors",
        "node_infiniband_excessive_buffer_overrun_errors_total", 4,
        "Times receive buffers overran too often; by the standard it stops at 15. Tags device, "
        "port."),
    InfinibandCount(
        "counters/VL15_dropped", "node_infiniband_vl15_dropped_total", 4,
        "Management packets dropped for lack of buffers; by the standard it stops at 65535. Tags "
        "device, port."),
    // Of mlx5.
    InfinibandCount(
        "hw_counters/out_of_buffer", "node_infiniband_hw_out_of_buffer_total", 4,
        "Packets dropped because the program had no receive buffer posted. Tags device, port."),
    InfinibandCount("hw_counters/out_of_sequence", "node_infiniband_hw_out_of_sequence_total", 4,
                    "Packets received out of order: some were lost. Tags device, port."),
    InfinibandCount(
        "hw_counters/packet_seq_err", "node_infiniband_hw_packet_seq_err_total", 4,
        "Requests by the other side to send again from a lost packet. Tags device, port."),
    InfinibandCount("hw_counters/local_ack_timeout_err",
                    "node_infiniband_hw_local_ack_timeout_err_total", 4,
                    "Times the other side did not acknowledge in time. Tags device, port."),
    InfinibandCount(
        "hw_counters/rnr_nak_retry_err", "node_infiniband_hw_rnr_nak_retry_err_total", 4,
        "Times the other side was still not ready to receive after all retries. Tags device, "
        "port."),
    InfinibandCount("hw_counters/np_cnp_sent", "node_infiniband_hw_np_cnp_sent_total", 4,
                    "RoCE congestion notices sent. Tags device, port."),
    InfinibandCount(
        "hw_counters/rp_cnp_handled", "node_infiniband_hw_rp_cnp_handled_total", 4,
        "RoCE congestion notices received and obeyed by sending more slowly. Tags device, port."),
    InfinibandCount(
        "hw_counters/np_ecn_marked_roce_packets",
        "node_infiniband_hw_np_ecn_marked_roce_packets_total", 4,
        "RoCE packets received that a switch marked as having met congestion. Tags device, port."),
    // Of efa, which has no counters/.
    Bytes("hw_counters/rx_bytes", 1, "node_infiniband_hw_rx_bytes_total",
          "Bytes received, by drivers that count them so (EFA). Tags device, port."),
    Bytes("hw_counters/tx_bytes", 1, "node_infiniband_hw_tx_bytes_total",
          "Bytes sent, by drivers that count them so (EFA). Tags device, port."),
    InfinibandCount("hw_counters/rx_drops", "node_infiniband_hw_rx_drops_total", 2,
                    "Packets received and dropped (EFA). Tags device, port."),
};

class InfinibandSource final : public NumberFilesSource {
 public:
  InfinibandSource(const Roots& roots, int level, ReadBuffer& buffer)
      : NumberFilesSource(roots.sys + "/class/infiniband", level, kInfinibandFields, buffer) {}

  std::string_view name() const override { return "infiniband"; }
  bool counts_from_boot() const override { return true; }

 private:
  std::vector<Device> ListDevices() const override {
    std::vector<Device> ports;
    for (const std::string& device : ListDirectory(root())) {
      if (!CheckTag("device", device).ok()) continue;
      const std::string directory = root() + "/" + device;
      const double scale = CountsFlits(directory, device) ? kFlitWords : 1;
      for (const std::string& port : ListDirectory(directory + "/ports")) {
        if (!CheckTag("port", port).ok()) continue;
        ports.push_back(
            {{{"device", device}, {"port", port}}, directory + "/ports/" + port, scale});
      }
    }
    return ports;
  }
  // By its driver, for devices may be renamed; by its name if there is no telling.
  static bool CountsFlits(const std::string& directory, std::string_view device) {
    std::error_code error;
    const std::filesystem::path driver =
        std::filesystem::read_symlink(directory + "/device/driver", error);
    return error ? device.starts_with(kFlitDriver) : driver.filename() == kFlitDriver;
  }
};

}  // namespace

std::unique_ptr<Source> MakeInfinibandSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<InfinibandSource>(roots, level, buffer);
}

std::vector<MetricDecl> InfinibandMetrics() {
  std::vector<MetricDecl> metrics;
  for (const NumberField& field : kInfinibandFields) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
