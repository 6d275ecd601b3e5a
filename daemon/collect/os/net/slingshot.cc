// /sys/class/cxi/DEVICE/device: traffic, congestion and errors of HPE Slingshot's network adapters
// (Cassini).
//
// telemetry/ has a file for each of the adapter's counters, "VALUE@SECONDS.NANOSECONDS", which
// everybody may read (docs/ABI/testing/sysfs-class-cxi of HPE's driver). Each is read from the
// adapter, so level 2 keeps to what tells how fast the network is and why not. Counters have 56
// bits. The interfaces hsn* in /proc/net/dev see only what goes through the kernel: not MPI.
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/read/directory.h"
#include "daemon/collect/read/number_files_source.h"
#include "daemon/collect/read/parse.h"

namespace sonde::collect {
namespace {

constexpr NumberField Counter(std::string_view file, std::string_view name, std::string_view unit,
                              double scale, uint8_t level, std::string_view help) {
  return {file, scale, {name, unit, MetricType::kCounter, level, Reduction::kSum, help}};
}
constexpr NumberField SlingshotCount(std::string_view file, std::string_view name, uint8_t level,
                                     std::string_view help) {
  return Counter(file, name, "1", 1, level, help);
}
// There is a file for each of the network's traffic classes.
constexpr NumberField OfClasses(NumberField field) {
  field.parts = 8;
  return field;
}

// The adapter's clock, in which it counts what was blocked: 1 GHz (CAS_HZ in HPE's cxi_stat.c).
constexpr double kCycleSeconds = 1e-9;

constexpr NumberField kSlingshotFields[] = {
    Counter("device/telemetry/hni_sts_rx_ok_octets", "node_slingshot_receive_bytes_total", "bytes",
            1, 2, "Bytes received without an error. Tag device."),
    Counter("device/telemetry/hni_sts_tx_ok_octets", "node_slingshot_transmit_bytes_total", "bytes",
            1, 2, "Bytes sent without an error. Tag device."),
    OfClasses(Counter("device/telemetry/hni_rx_paused_",
                      "node_slingshot_receive_paused_seconds_total", "seconds", kCycleSeconds, 2,
                      "Time in which receiving was paused, added up over 8 traffic classes: a sign "
                      "of congestion. Tag device.")),
    OfClasses(Counter("device/telemetry/hni_tx_paused_",
                      "node_slingshot_transmit_paused_seconds_total", "seconds", kCycleSeconds, 2,
                      "Time in which sending was paused, added up over 8 traffic classes: a sign "
                      "of congestion. Tag device.")),
    SlingshotCount("device/telemetry/pct_retry_srb_requests", "node_slingshot_retries_total", 2,
                   "Requests that were sent again. Tag device."),
    SlingshotCount("device/telemetry/pct_spt_timeouts", "node_slingshot_timeouts_total", 2,
                   "Packets that were not answered in time, such as lost ones. Tag device."),
    SlingshotCount("device/telemetry/hni_pcs_uncorrected_cw",
                   "node_slingshot_uncorrected_codewords_total", 2,
                   "Errors on the link that could not be corrected. Tag device."),
    {"device/properties/link",
     1,
     {"node_slingshot_up", "1", MetricType::kGauge, 2, Reduction::kMin,
      "1 while the link is up. Tag device."}},
    OfClasses(SlingshotCount("device/telemetry/hni_pkts_recv_by_tc_",
                             "node_slingshot_receive_packets_total", 4,
                             "Packets received. Tag device.")),
    OfClasses(SlingshotCount("device/telemetry/hni_pkts_sent_by_tc_",
                             "node_slingshot_transmit_packets_total", 4,
                             "Packets sent. Tag device.")),
    OfClasses(SlingshotCount("device/telemetry/hni_discard_cntr_", "node_slingshot_discards_total",
                             4, "Packets discarded. Tag device.")),
    SlingshotCount("device/telemetry/hni_pcs_corrected_cw",
                   "node_slingshot_corrected_codewords_total", 4,
                   "Errors on the link that were corrected: some are normal. Tag device."),
    SlingshotCount("device/telemetry/hni_llr_rx_replay_event",
                   "node_slingshot_receive_replays_total", 4,
                   "How often the other end of the link had to send again. Tag device."),
    SlingshotCount("device/telemetry/hni_llr_tx_replay_event",
                   "node_slingshot_transmit_replays_total", 4,
                   "How often this end of the link had to send again. Tag device."),
    SlingshotCount("device/telemetry/pct_sct_timeouts", "node_slingshot_connection_timeouts_total",
                   4, "Connections that were not answered in time. Tag device."),
    SlingshotCount("device/telemetry/pct_no_tct_nacks", "node_slingshot_connection_nacks_total", 4,
                   "Requests refused for too many connections to this node. Tag device."),
    SlingshotCount("device/telemetry/pct_no_trs_nacks", "node_slingshot_result_nacks_total", 4,
                   "Requests refused for too many results kept here. Tag device."),
    SlingshotCount("device/telemetry/pct_no_mst_nacks", "node_slingshot_message_nacks_total", 4,
                   "Requests refused for too many messages at once. Tag device."),
    SlingshotCount("device/telemetry/parbs_tarb_pi_posted_pkts", "node_slingshot_pcie_writes_total",
                   4, "Packets the adapter wrote over PCIe. Tag device."),
    Counter("device/telemetry/parbs_tarb_pi_posted_blocked_cnt",
            "node_slingshot_pcie_write_blocked_seconds_total", "seconds", kCycleSeconds, 4,
            "Time in which it could not write over PCIe. Tag device."),
    SlingshotCount("device/telemetry/parbs_tarb_pi_non_posted_pkts",
                   "node_slingshot_pcie_reads_total", 4,
                   "Packets with which the adapter read over PCIe. Tag device."),
    Counter("device/telemetry/parbs_tarb_pi_non_posted_blocked_cnt",
            "node_slingshot_pcie_read_blocked_seconds_total", "seconds", kCycleSeconds, 4,
            "Time in which it could not read over PCIe. Tag device."),
};

class SlingshotSource final : public NumberFilesSource {
 public:
  SlingshotSource(const Roots& roots, int level, ReadBuffer& buffer)
      : NumberFilesSource(roots.sys + "/class/cxi", level, kSlingshotFields, buffer) {}

  std::string_view name() const override { return "slingshot"; }
  bool counts_from_boot() const override { return true; }

 private:
  std::vector<Device> ListDevices() const override {
    std::vector<Device> devices;
    for (const std::string& device : ListDirectory(root())) {
      if (!CheckTag("device", device).ok()) continue;
      devices.push_back({{{"device", device}}, root() + "/" + device});
    }
    return devices;
  }
  double ParseNumber(std::string_view text) const override { return ParseCxiNumber(text); }
};

}  // namespace

double ParseCxiNumber(std::string_view text) {
  Cursor at(text);
  const double value = at.Number();
  if (at.Skip("@")) {
    uint64_t number = 0;
    if (!at.Unsigned(number) || !at.Skip(".") || !at.Unsigned(number)) return kMissing;
  }
  return at.Rest() == "\n" ? value : kMissing;
}

std::unique_ptr<Source> MakeSlingshotSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<SlingshotSource>(roots, level, buffer);
}

std::vector<MetricDecl> SlingshotMetrics() {
  std::vector<MetricDecl> metrics;
  for (const NumberField& field : kSlingshotFields) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
