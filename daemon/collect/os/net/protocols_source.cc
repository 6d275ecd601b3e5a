#include "daemon/collect/os/net/protocols_source.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sonde::collect {

ProtocolsSource::ProtocolsSource(std::string_view name, std::string path,
                                 const std::vector<std::span<const ProtocolField>>& tables,
                                 int level, ReadBuffer& buffer)
    : FileSource(std::move(path), Shape::kWhole, 4096, buffer), name_(name) {
  for (const std::span<const ProtocolField> table : tables) {
    std::copy_if(table.begin(), table.end(), std::back_inserter(fields_),
                 [&](const ProtocolField& f) { return f.decl.level <= level; });
  }
}

void ProtocolsSource::Parse(std::string_view text) {
  text = text.substr(0, text.rfind('\n') + 1);  // half a line is none
  if (ReadSections(text)) return;
  Rescan(text);
  ReadSections(text);
}

// False if the wanted values are not where they were.
bool ProtocolsSource::ReadSections(std::string_view text) {
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

void ProtocolsSource::ReadValues(std::string_view text, const Section& section) {
  Cursor line(text);
  if (!line.Skip(section.prefix)) return;
  size_t at = 0;
  for (const Column& wanted : section.columns) {
    if (!line.SkipWords(static_cast<int>(wanted.word - at))) return;
    const double value = line.Number() * wanted.scale;
    const bool whole = line.AtEnd() || line.Rest().starts_with(' ');
    values_[wanted.column] = whole ? value : kMissing;
    at = wanted.word + 1;
  }
}

const ProtocolField* ProtocolsSource::WantedPrefix(std::string_view line) const {
  const auto found = std::find_if(fields_.begin(), fields_.end(), [&](const ProtocolField& f) {
    return line.starts_with(f.prefix);
  });
  return found == fields_.end() ? nullptr : &*found;
}

// Kernels differ in the names they have, and do not change them while they run.
void ProtocolsSource::Rescan(std::string_view text) {
  sections_.clear();
  series_.clear();
  values_.clear();
  for (Cursor lines(text); !lines.AtEnd(); lines.Line()) {
    const std::string_view names = lines.Line();
    const ProtocolField* const field = WantedPrefix(names);
    if (field != nullptr) AddSection(names, field->prefix);
  }
  ++generation_;
}

void ProtocolsSource::AddSection(std::string_view names, std::string_view prefix) {
  Section& section = sections_.emplace_back();
  section.names = names;
  section.prefix = prefix;
  Cursor line(names.substr(prefix.size()));
  for (size_t word = 0;; ++word) {
    const std::string_view key = line.Word();
    if (key.empty()) return;
    for (const ProtocolField& field : fields_) {
      if (field.prefix != prefix || field.key != key || IsKnown(field)) continue;
      section.columns.push_back({word, values_.size(), field.scale});
      AddSeries(field.decl);
    }
  }
}

bool ProtocolsSource::IsKnown(const ProtocolField& field) const {
  return std::any_of(series_.begin(), series_.end(),
                     [&](const Series& s) { return s.metric.name == field.decl.name; });
}

}  // namespace sonde::collect
