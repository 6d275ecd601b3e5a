// A source whose file has, for each protocol, a line of names and below it a line of values:
//
//   Udp: InDatagrams NoPorts ...
//   Udp: 1336 0 ...
//
// /proc/net/snmp and /proc/net/netstat. A line of names is compared as a whole with the one of the
// last reading; only if it differs is it read again. Both files are those of the daemon's network
// namespace, the node's.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/read/file_source.h"

namespace sonde::collect {

struct ProtocolField {
  std::string_view prefix;  // of the protocol's lines
  std::string_view key;
  MetricDecl decl;
  double scale = 1;  // to the metric's unit
};

class ProtocolsSource final : public FileSource {
 public:
  // `name` and the tables outlive the source. The fields of a step of that level are kept.
  ProtocolsSource(std::string_view name, std::string path,
                  const std::vector<std::span<const ProtocolField>>& tables, int level,
                  ReadBuffer& buffer);

  std::string_view name() const override { return name_; }
  bool counts_from_boot() const override { return true; }
  void Parse(std::string_view text) override;

 private:
  struct Column {
    size_t word;  // behind the prefix, from 0
    size_t column;
    double scale;
  };
  // A protocol of which something is wanted.
  struct Section {
    std::string names;  // the line
    std::string_view prefix;
    std::vector<Column> columns;  // sorted by word
  };

  bool ReadSections(std::string_view text);
  void ReadValues(std::string_view text, const Section& section);
  const ProtocolField* WantedPrefix(std::string_view line) const;
  void Rescan(std::string_view text);
  void AddSection(std::string_view names, std::string_view prefix);
  bool IsKnown(const ProtocolField& field) const;

  const std::string_view name_;
  std::vector<ProtocolField> fields_;  // of the step's level
  std::vector<Section> sections_;      // in the order of the file
};

// Declarations for the tables.
constexpr ProtocolField CountOf(std::string_view prefix, std::string_view key,
                                std::string_view name, uint8_t level, std::string_view help) {
  return {prefix, key, {name, "1", MetricType::kCounter, level, Reduction::kSum, help}};
}
constexpr ProtocolField BytesOf(std::string_view prefix, std::string_view key,
                                std::string_view name, uint8_t level, std::string_view help) {
  return {prefix, key, {name, "bytes", MetricType::kCounter, level, Reduction::kSum, help}};
}

}  // namespace sonde::collect
