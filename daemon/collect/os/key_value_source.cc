#include "daemon/collect/os/key_value_source.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace sonde::collect {
namespace {

// More than any kernel has; looking for twice the same name takes their square.
constexpr size_t kMaxWanted = 1024;

bool IsAt(std::string_view text, size_t at, std::string_view name) {
  return at < text.size() && (at == 0 || text[at - 1] == '\n') && text.substr(at).starts_with(name);
}

size_t BytesOfLines(std::string_view text, size_t lines) {
  Cursor at(text);
  for (; lines > 0; --lines) at.Line();
  return text.size() - at.Rest().size();
}

std::string_view LastName(std::string_view text) {
  if (!text.empty()) text.remove_suffix(1);
  return Cursor(text.substr(text.rfind('\n') + 1)).Word();
}

}  // namespace

KeyValueSource::KeyValueSource(std::string path, Shape shape,
                               std::vector<std::span<const KeyField>> tables, int level,
                               ReadBuffer& buffer)
    : FileSource(std::move(path), shape, 4096, buffer),
      tables_(std::move(tables)),
      level_(level),
      page_size_(static_cast<double>(sysconf(_SC_PAGESIZE))) {}

void KeyValueSource::Parse(std::string_view text) {
  if (outcome_ != Outcome::kRead) Rescan(text);
  outcome_ = ReadLines(text);
  if (outcome_ == Outcome::kCutShort || (outcome_ == Outcome::kRead && settled_)) return;
  Rescan(text);
  outcome_ = ReadLines(text);
}

KeyValueSource::Outcome KeyValueSource::ReadLines(std::string_view text) {
  size_t at = 0;
  for (size_t i = 0; i < lines_.size(); ++i) {
    Line& line = lines_[i];
    if (!IsAt(text, at + line.bytes, line.name)) {
      line.bytes = BytesOfLines(text.substr(at), line.lines);
      if (!IsAt(text, at + line.bytes, line.name)) {
        ClearFrom(i);
        return text.find('\n', at + line.bytes) == std::string_view::npos ? Outcome::kCutShort
                                                                          : Outcome::kChanged;
      }
    }
    Cursor rest(text.substr(at + line.bytes + line.name.size()));
    TakeValue(rest, line);
    at = text.size() - rest.Rest().size();
  }
  // Another last line tells that there are new lines behind the wanted ones.
  return LastName(text) == last_ ? Outcome::kRead : Outcome::kChanged;
}

// A number that ends in anything but its unit and its line is not the whole number.
void KeyValueSource::TakeValue(Cursor& rest, const Line& line) {
  double value = rest.Number() * line.scale;
  rest.Skip(" kB");
  if (!rest.Skip("\n")) {
    value = kMissing;
    rest.Line();
  }
  double& to = values_[line.column];
  to = line.adds ? to + value : value;
}

// Half a sum would look like a counter that fell, and then rose.
void KeyValueSource::ClearFrom(size_t first) {
  for (size_t i = first; i < lines_.size(); ++i) values_[lines_[i].column] = kMissing;
}

void KeyValueSource::Rescan(std::string_view text) {
  const std::vector<Line> lines_before = std::exchange(lines_, {});
  last_ = LastName(text);
  const std::vector<const KeyField*> before = std::exchange(fields_, {});
  size_t start = 0;
  size_t between = 0;
  for (Cursor line(text); !line.AtEnd() && lines_.size() < kMaxWanted;) {
    const size_t at = text.size() - line.Rest().size();
    const std::string_view key = line.Word();
    line.Line();
    // The blank behind the name belongs to it, so that no other begins like it.
    const bool whole = !key.empty() && text.substr(at).starts_with(key) &&
                       text.substr(at + key.size()).starts_with(' ');
    const KeyField* const field = whole ? Find(key) : nullptr;
    if (field == nullptr) {
      ++between;
      continue;
    }
    AddLine(text.substr(at, key.size() + 1), *field, between, at - start);
    between = 0;
    start = text.size() - line.Rest().size();
  }
  settled_ = std::equal(lines_.begin(), lines_.end(), lines_before.begin(), lines_before.end(),
                        [](const Line& a, const Line& b) { return a.name == b.name; });
  if (fields_ != before) DeclareSeries();
}

void KeyValueSource::AddLine(std::string_view name, const KeyField& field, size_t lines,
                             size_t bytes) {
  const auto known = std::find(fields_.begin(), fields_.end(), &field);
  const auto column = static_cast<size_t>(known - fields_.begin());
  const bool adds = known != fields_.end();
  if (!adds) fields_.push_back(&field);
  lines_.push_back({std::string(name), column, Scale(field.unit), adds, lines, bytes});
}

void KeyValueSource::DeclareSeries() {
  series_.clear();
  values_.clear();
  for (const KeyField* field : fields_) AddSeries(field->decl);
  ++generation_;
}

const KeyField* KeyValueSource::Find(std::string_view key) const {
  // A name that comes twice is not the kernel's.
  const auto same = [&](const Line& l) {
    return l.name.size() == key.size() + 1 && l.name.starts_with(key);
  };
  for (const std::span<const KeyField> table : tables_) {
    for (const KeyField& field : table) {
      if (field.decl.level > level_ || !key.starts_with(field.key)) continue;
      const std::string_view ending = key.substr(field.key.size());
      if (std::find(field.endings.begin(), field.endings.end(), ending) == field.endings.end()) {
        continue;
      }
      return std::none_of(lines_.begin(), lines_.end(), same) ? &field : nullptr;
    }
  }
  return nullptr;
}

double KeyValueSource::Scale(KeyUnit unit) const {
  switch (unit) {
    case KeyUnit::kPages:
      return page_size_;
    case KeyUnit::kKibibytes:
      return 1024;
    default:
      return 1;
  }
}

}  // namespace sonde::collect
