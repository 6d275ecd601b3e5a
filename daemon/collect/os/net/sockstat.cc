// /proc/net/sockstat: sockets in use and the memory their buffers take, as lines such as
//
//   TCP: inuse 1 orphan 0 tw 1 alloc 1 mem 0
#include <unistd.h>

#include <algorithm>

#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

struct SockstatField {
  std::string_view prefix;  // of the line
  std::string_view key;     // before the number
  MetricDecl decl;
  bool pages = false;
};

constexpr SockstatField SockstatCount(std::string_view prefix, std::string_view key,
                                      std::string_view name, uint8_t level, std::string_view help) {
  return {prefix, key, {name, "1", MetricType::kGauge, level, Reduction::kSum, help}};
}
constexpr SockstatField Bytes(std::string_view prefix, std::string_view key, std::string_view name,
                              uint8_t level, std::string_view help, bool pages = true) {
  return {prefix, key, {name, "bytes", MetricType::kGauge, level, Reduction::kSum, help}, pages};
}

// node_exporter's names, with units.
constexpr SockstatField kSockstatFields[] = {
    SockstatCount("sockets:", "used", "node_sockstat_sockets_used", 2, "Sockets of any kind."),
    SockstatCount("TCP:", "inuse", "node_sockstat_TCP_inuse", 2,
                  "TCP sockets over IPv4 that are connected or listen."),
    SockstatCount("TCP:", "orphan", "node_sockstat_TCP_orphan", 2,
                  "TCP connections that no program holds any more and that are not over yet."),
    SockstatCount("TCP:", "tw", "node_sockstat_TCP_tw", 2,
                  "Closed TCP connections that are remembered for a while (TIME_WAIT)."),
    SockstatCount("TCP:", "alloc", "node_sockstat_TCP_alloc", 2, "TCP sockets in any state."),
    Bytes("TCP:", "mem", "node_sockstat_TCP_mem_bytes", 2,
          "Memory of TCP's buffers, to be compared with tcp_mem."),
    SockstatCount("UDP:", "inuse", "node_sockstat_UDP_inuse", 2, "UDP sockets over IPv4."),
    Bytes("UDP:", "mem", "node_sockstat_UDP_mem_bytes", 2, "Memory of UDP's buffers."),
    SockstatCount("UDPLITE:", "inuse", "node_sockstat_UDPLITE_inuse", 4, "UDP-Lite sockets."),
    SockstatCount("RAW:", "inuse", "node_sockstat_RAW_inuse", 4, "Raw sockets, such as ping uses."),
    SockstatCount("FRAG:", "inuse", "node_sockstat_FRAG_inuse", 4,
                  "IPv4 packets of which fragments are waited for."),
    Bytes("FRAG:", "memory", "node_sockstat_FRAG_memory_bytes", 4,
          "Memory of fragments that wait for others.", false),
};

class SockstatSource final : public FileSource {
 public:
  SockstatSource(const Roots& roots, int level, ReadBuffer& buffer)
      : FileSource(roots.proc + "/net/sockstat", Shape::kWhole, 512, buffer),
        page_size_(static_cast<double>(sysconf(_SC_PAGESIZE))) {
    std::copy_if(std::begin(kSockstatFields), std::end(kSockstatFields),
                 std::back_inserter(fields_),
                 [&](const SockstatField& f) { return f.decl.level <= level; });
    for (const SockstatField& field : fields_) AddSeries(field.decl);
  }

  std::string_view name() const override { return "sockstat"; }
  bool counts_from_boot() const override { return false; }
  void Parse(std::string_view text) override {
    ClearValues();
    text = text.substr(0, text.rfind('\n') + 1);  // half a line is none
    for (Cursor lines(text); !lines.AtEnd();) {
      Cursor line(lines.Line());
      const std::string_view prefix = line.Word();
      while (!line.AtEnd()) {
        const std::string_view key = line.Word();
        TakeValue(prefix, key, line.Word());
      }
    }
  }

 private:
  void TakeValue(std::string_view prefix, std::string_view key, std::string_view number) {
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].prefix != prefix || fields_[i].key != key) continue;
      Cursor digits(number);
      const double value = digits.Number() * (fields_[i].pages ? page_size_ : 1);
      values_[i] = digits.AtEnd() ? value : kMissing;
      return;
    }
  }

  const double page_size_;
  std::vector<SockstatField> fields_;  // of the step's level
};

}  // namespace

std::unique_ptr<FileSource> MakeSockstatSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<SockstatSource>(roots, level, buffer);
}

std::vector<MetricDecl> SockstatMetrics() { return DeclarationsOf(kSockstatFields); }

}  // namespace sonde::collect
