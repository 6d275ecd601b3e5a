// /proc/net/dev: traffic of the network interfaces. The loopback interface counts from level 4 on.
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/read/device_source.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl Declare(std::string_view name, std::string_view unit, uint8_t level,
                             std::string_view help) {
  return {name, unit, MetricType::kCounter, level, Reduction::kSum, help};
}

// The names are node_exporter's.
constexpr DeviceField kNetdevFields[] = {
    {Declare("node_network_receive_bytes_total", "bytes", 2, "Bytes received. Tag device."), 0, 1},
    {Declare("node_network_receive_packets_total", "1", 2, "Packets received. Tag device."), 1, 1},
    {Declare("node_network_receive_errs_total", "1", 2,
             "Packets received with an error. Tag device."),
     2, 1},
    {Declare("node_network_receive_drop_total", "1", 2,
             "Packets received and dropped. Tag device."),
     3, 1},
    {Declare("node_network_receive_fifo_total", "1", 2, "Receive queue overruns. Tag device."), 4,
     1},
    {Declare("node_network_receive_frame_total", "1", 2, "Framing errors. Tag device."), 5, 1},
    {Declare("node_network_receive_compressed_total", "1", 4,
             "Compressed packets received. Tag device."),
     6, 1},
    {Declare("node_network_receive_multicast_total", "1", 2,
             "Multicast packets received. Tag device."),
     7, 1},
    {Declare("node_network_transmit_bytes_total", "bytes", 2, "Bytes sent. Tag device."), 8, 1},
    {Declare("node_network_transmit_packets_total", "1", 2, "Packets sent. Tag device."), 9, 1},
    {Declare("node_network_transmit_errs_total", "1", 2,
             "Packets not sent for an error. Tag device."),
     10, 1},
    {Declare("node_network_transmit_drop_total", "1", 2, "Packets dropped when sent. Tag device."),
     11, 1},
    {Declare("node_network_transmit_fifo_total", "1", 2, "Transmit queue errors. Tag device."), 12,
     1},
    {Declare("node_network_transmit_colls_total", "1", 4, "Collisions. Tag device."), 13, 1},
    {Declare("node_network_transmit_carrier_total", "1", 2, "Carrier losses. Tag device."), 14, 1},
    {Declare("node_network_transmit_compressed_total", "1", 4,
             "Compressed packets sent. Tag device."),
     15, 1},
};

class NetdevSource final : public DeviceSource {
 public:
  NetdevSource(const Roots& roots, int level, ReadBuffer& buffer)
      : DeviceSource(roots.proc + "/net/dev", level, kNetdevFields, buffer),
        loopback_(level >= 4) {}

  std::string_view name() const override { return "netdev"; }

 private:
  // The two lines of headings have no colon before their first blank.
  std::string_view TakeName(Cursor& line) const override {
    line.SkipBlanks();
    const std::string_view rest = line.Rest();
    const size_t end = rest.find_first_of(": \n");
    if (end == std::string_view::npos || rest[end] != ':') return {};
    line.Skip(rest.substr(0, end + 1));
    return rest.substr(0, end);
  }
  bool IsPartOf(std::string_view, std::string_view) const override { return false; }
  bool Wanted(std::string_view device, bool) const override { return loopback_ || device != "lo"; }

  const bool loopback_;
};

}  // namespace

std::unique_ptr<FileSource> MakeNetdevSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<NetdevSource>(roots, level, buffer);
}

std::vector<MetricDecl> NetdevMetrics() { return DeclarationsOf(kNetdevFields); }

}  // namespace sonde::collect
