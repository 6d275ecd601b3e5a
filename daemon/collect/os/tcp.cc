// /proc/net/snmp and /proc/net/netstat: how TCP and UDP fare on the node.
//
// Each protocol has a line of names and below it a line of values:
//   Udp: InDatagrams NoPorts ...
//   Udp: 1336 0 ...
// A line of names is compared as a whole with the one of the last reading; only if it differs is it
// read again. Both files are those of the daemon's network namespace, the node's.
#include <algorithm>
#include <iterator>
#include <span>

#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

struct Field {
  std::string_view prefix;  // of the protocol's lines
  std::string_view key;
  MetricDecl decl;
};

constexpr Field Count(std::string_view prefix, std::string_view key, std::string_view name,
                      uint8_t level, std::string_view help) {
  return {prefix, key, {name, "1", MetricType::kCounter, level, Reduction::kSum, help}};
}

constexpr std::string_view kTcp = "Tcp:";
constexpr std::string_view kUdp = "Udp:";
constexpr std::string_view kTcpExt = "TcpExt:";

// The names are node_exporter's, which are the kernel's, with _total.
constexpr Field kSnmp[] = {
    Count(kTcp, "InSegs", "node_netstat_Tcp_InSegs_total", 4, "TCP segments received."),
    Count(kTcp, "OutSegs", "node_netstat_Tcp_OutSegs_total", 4,
          "TCP segments sent, without those sent again."),
    Count(kTcp, "RetransSegs", "node_netstat_Tcp_RetransSegs_total", 4,
          "TCP segments sent again: the network loses packets or is overloaded."),
    Count(kTcp, "ActiveOpens", "node_netstat_Tcp_ActiveOpens_total", 4,
          "TCP connections begun from here."),
    Count(kTcp, "PassiveOpens", "node_netstat_Tcp_PassiveOpens_total", 4,
          "TCP connections begun from elsewhere."),
    Count(kTcp, "AttemptFails", "node_netstat_Tcp_AttemptFails_total", 4,
          "TCP connections that did not come about."),
    Count(kTcp, "EstabResets", "node_netstat_Tcp_EstabResets_total", 4,
          "TCP connections that were cut off."),
    {kTcp,
     "CurrEstab",
     {"node_netstat_Tcp_CurrEstab", "1", MetricType::kGauge, 4, Reduction::kSum,
      "TCP connections that exist."}},
    Count(kTcp, "InErrs", "node_netstat_Tcp_InErrs_total", 4,
          "TCP segments received with an error, wrong checksums included."),
    Count(kTcp, "OutRsts", "node_netstat_Tcp_OutRsts_total", 4,
          "TCP segments sent that refuse or cut off a connection."),
    Count(kUdp, "RcvbufErrors", "node_netstat_Udp_RcvbufErrors_total", 4,
          "UDP datagrams lost because a socket's receive buffer was full."),
    Count(kUdp, "InErrors", "node_netstat_Udp_InErrors_total", 4,
          "UDP datagrams lost when received, for whatever reason: RcvbufErrors included."),
    Count(kUdp, "InDatagrams", "node_netstat_Udp_InDatagrams_total", 4, "UDP datagrams received."),
    Count(kUdp, "OutDatagrams", "node_netstat_Udp_OutDatagrams_total", 4, "UDP datagrams sent."),
    Count(kUdp, "NoPorts", "node_netstat_Udp_NoPorts_total", 4,
          "UDP datagrams for a port on which nobody listened."),
    Count(kUdp, "SndbufErrors", "node_netstat_Udp_SndbufErrors_total", 4,
          "UDP datagrams not sent because a send buffer was full."),
    Count(kUdp, "InCsumErrors", "node_netstat_Udp_InCsumErrors_total", 4,
          "UDP datagrams received with a wrong checksum."),
    Count(kUdp, "MemErrors", "node_netstat_Udp_MemErrors_total", 4,
          "UDP datagrams lost because all of UDP had used up its memory."),
};
constexpr Field kNetstat[] = {
    Count(kTcpExt, "ListenDrops", "node_netstat_TcpExt_ListenDrops_total", 4,
          "TCP connections from elsewhere that were dropped before a program took them, for "
          "whatever reason."),
    Count(kTcpExt, "ListenOverflows", "node_netstat_TcpExt_ListenOverflows_total", 4,
          "Those of them that came faster than the program took them: the queue given to listen() "
          "was full."),
    Count(kTcpExt, "TCPTimeouts", "node_netstat_TcpExt_TCPTimeouts_total", 4,
          "Times TCP waited in vain for an answer, and sent again: each costs 0.2 s or more."),
    Count(kTcpExt, "TCPLostRetransmit", "node_netstat_TcpExt_TCPLostRetransmit_total", 4,
          "TCP segments that were sent again and lost again."),
    Count(kTcpExt, "TCPFastRetrans", "node_netstat_TcpExt_TCPFastRetrans_total", 4,
          "TCP segments sent again without waiting for a timeout."),
    Count(kTcpExt, "TCPSynRetrans", "node_netstat_TcpExt_TCPSynRetrans_total", 4,
          "Requests for a TCP connection sent again."),
    Count(kTcpExt, "TCPSpuriousRTOs", "node_netstat_TcpExt_TCPSpuriousRTOs_total", 4,
          "Timeouts that came too early: nothing was lost."),
    Count(kTcpExt, "TCPAbortOnTimeout", "node_netstat_TcpExt_TCPAbortOnTimeout_total", 4,
          "TCP connections given up after too many timeouts."),
    Count(kTcpExt, "TCPAbortOnMemory", "node_netstat_TcpExt_TCPAbortOnMemory_total", 4,
          "TCP connections cut off for lack of memory."),
    Count(kTcpExt, "TCPMemoryPressures", "node_netstat_TcpExt_TCPMemoryPressures_total", 4,
          "Times TCP came near the memory it may use (tcp_mem)."),
    Count(kTcpExt, "PruneCalled", "node_netstat_TcpExt_PruneCalled_total", 4,
          "Times a TCP socket's receive buffer was squeezed, being full."),
    Count(kTcpExt, "TCPRcvQDrop", "node_netstat_TcpExt_TCPRcvQDrop_total", 4,
          "TCP segments dropped because a socket's receive queue was full."),
    Count(kTcpExt, "TCPBacklogDrop", "node_netstat_TcpExt_TCPBacklogDrop_total", 4,
          "TCP segments dropped because a socket in use had too many waiting."),
    Count(kTcpExt, "TCPReqQFullDrop", "node_netstat_TcpExt_TCPReqQFullDrop_total", 4,
          "Requests for a TCP connection dropped because too many were half open."),
    Count(kTcpExt, "TCPTimeWaitOverflow", "node_netstat_TcpExt_TCPTimeWaitOverflow_total", 4,
          "Closed TCP connections forgotten early because there were too many."),
};

class ProtocolsSource final : public FileSource {
 public:
  ProtocolsSource(std::string_view name, const std::string& path, std::span<const Field> fields,
                  int level, ReadBuffer& buffer)
      : FileSource(path, Shape::kWhole, 4096, buffer), name_(name) {
    std::copy_if(fields.begin(), fields.end(), std::back_inserter(fields_),
                 [&](const Field& f) { return f.decl.level <= level; });
  }

  std::string_view name() const override { return name_; }
  bool counts_from_boot() const override { return true; }
  void Parse(std::string_view text) override {
    text = text.substr(0, text.rfind('\n') + 1);  // half a line is none
    if (ReadSections(text)) return;
    Rescan(text);
    ReadSections(text);
  }

 private:
  struct Column {
    size_t word;  // behind the prefix, from 0
    size_t column;
  };
  // A protocol of which something is wanted.
  struct Section {
    std::string names;  // the line
    std::string_view prefix;
    std::vector<Column> columns;  // sorted by word
  };

  // False if what is wanted is not where it was.
  bool ReadSections(std::string_view text) {
    ClearValues();
    size_t next = 0;
    for (Cursor lines(text); !lines.AtEnd();) {
      const std::string_view names = lines.Line();
      const std::string_view values = lines.Line();
      if (next < sections_.size() && names == sections_[next].names) {
        ReadValues(values, sections_[next++]);
      } else if (WantedPrefix(names) != nullptr) {
        return false;
      }
    }
    return true;
  }
  void ReadValues(std::string_view text, const Section& section) {
    Cursor line(text);
    if (!line.Skip(section.prefix)) return;
    size_t at = 0;
    for (const Column& wanted : section.columns) {
      if (!line.SkipWords(static_cast<int>(wanted.word - at))) return;
      values_[wanted.column] = line.Number();
      if (!line.AtEnd() && !line.Rest().starts_with(' ')) values_[wanted.column] = kMissing;
      at = wanted.word + 1;
    }
  }
  const Field* WantedPrefix(std::string_view line) const {
    const auto found = std::find_if(fields_.begin(), fields_.end(),
                                    [&](const Field& f) { return line.starts_with(f.prefix); });
    return found == fields_.end() ? nullptr : &*found;
  }

  // Kernels differ in the names they have, and do not change them while they run.
  void Rescan(std::string_view text) {
    sections_.clear();
    series_.clear();
    values_.clear();
    for (Cursor lines(text); !lines.AtEnd(); lines.Line()) {
      const std::string_view names = lines.Line();
      const Field* const field = WantedPrefix(names);
      if (field != nullptr) AddSection(names, field->prefix);
    }
    ++generation_;
  }
  void AddSection(std::string_view names, std::string_view prefix) {
    Section& section = sections_.emplace_back();
    section.names = names;
    section.prefix = prefix;
    Cursor line(names.substr(prefix.size()));
    for (size_t word = 0;; ++word) {
      const std::string_view key = line.Word();
      if (key.empty()) return;
      for (const Field& field : fields_) {
        if (field.prefix != prefix || field.key != key || IsKnown(field)) continue;
        section.columns.push_back({word, values_.size()});
        AddSeries(field.decl);
      }
    }
  }
  bool IsKnown(const Field& field) const {
    return std::any_of(series_.begin(), series_.end(),
                       [&](const Series& s) { return s.metric.name == field.decl.name; });
  }

  const std::string_view name_;
  std::vector<Field> fields_;      // of the step's level
  std::vector<Section> sections_;  // in the order of the file
};

}  // namespace

std::unique_ptr<FileSource> MakeSnmpSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<ProtocolsSource>("snmp", roots.proc + "/net/snmp", kSnmp, level, buffer);
}

std::unique_ptr<FileSource> MakeNetstatSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<ProtocolsSource>("netstat", roots.proc + "/net/netstat", kNetstat, level,
                                           buffer);
}

std::vector<MetricDecl> TcpMetrics() {
  std::vector<MetricDecl> metrics;
  for (const Field& field : kSnmp) metrics.push_back(field.decl);
  for (const Field& field : kNetstat) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
