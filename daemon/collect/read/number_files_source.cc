#include "daemon/collect/read/number_files_source.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "daemon/collect/read/parse.h"

namespace sonde::collect {
namespace {

constexpr Nanos kRescan = 60 * kSecond;
constexpr size_t kMostFiles = 512;  // each is a descriptor, of which there may be 1024

std::string PathOf(const std::string& directory, const NumberField& field, unsigned part) {
  return field.parts == 0 ? fmt::format("{}/{}", directory, field.file)
                          : fmt::format("{}/{}{}", directory, field.file, part);
}

size_t FilesOf(const NumberField& field) { return std::max<size_t>(field.parts, 1); }

}  // namespace

// A number that ends in anything but its line is not the whole number.
double NumberFilesSource::ParseNumber(std::string_view text) const {
  Cursor line(text);
  const double value = line.Number();
  return line.Skip("\n") ? value : kMissing;
}

void NumberFilesSource::Sample(Nanos now) {
  if (now < read_at_) return;
  read_at_ = now + period_;
  if (now >= rescan_at_) Rescan(now);
  size_t column = 0;
  for (Entry& entry : entries_) {
    bool readable = false;
    for (Number& number : entry.numbers) {
      const double value = Read(number, now);
      readable = readable || !std::isnan(value);
      values_[column++] = value;
    }
    if (entry.readable && !readable) rescan_at_ = now;  // it may be gone
    entry.readable = readable;
  }
}

double NumberFilesSource::Read(Number& number, Nanos now) {
  double sum = 0;
  for (FileReader& file : number.files) sum += ParseNumber(file.Read(buffer_, now));
  return sum * number.scale;
}

void NumberFilesSource::Rescan(Nanos now) {
  rescan_at_ = now + kRescan;
  if (found_.empty() && access(root_.c_str(), F_OK) != 0) return;  // most machines
  std::vector<Found> found = ListFields();
  if (found == found_) return;
  found_ = std::move(found);
  Declare(now);
}

std::vector<NumberFilesSource::Found> NumberFilesSource::ListFields() const {
  std::vector<Found> found;
  std::error_code error;
  for (Device& device : ListDevices()) {
    Found& last = found.emplace_back(Found{std::move(device), {}});
    for (const NumberField& field : fields_) {
      if (field.decl.level > level_) continue;
      if (std::filesystem::exists(PathOf(last.device.directory, field, 0), error)) {
        last.fields.push_back(&field);
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.device.tags < b.device.tags; });
  return found;
}

void NumberFilesSource::Declare(Nanos now) {
  entries_.clear();
  series_.clear();
  size_t files = 0;
  for (const Found& found : found_) {
    for (const NumberField* field : found.fields) files += FilesOf(*field);
    if (files > kMostFiles) {
      if (!std::exchange(limit_noted_, true)) {
        notes_.push_back(fmt::format("{}: devices are left out, only {} counters are recorded",
                                     name(), kMostFiles));
      }
      break;
    }
    DeclareDevice(found, now);
  }
  values_.assign(series_.size(), kMissing);
  ++generation_;
}

void NumberFilesSource::DeclareDevice(const Found& found, Nanos now) {
  Entry& entry = entries_.emplace_back();
  for (const NumberField* field : found.fields) {
    Number number;
    number.scale = field->decl.unit == "bytes" ? field->scale * found.device.scale : field->scale;
    for (unsigned part = 0; part < FilesOf(*field); ++part) {
      number.files.emplace_back(PathOf(found.device.directory, *field, part), Shape::kWhole,
                                kNumberSize);
    }
    const std::string_view text = number.files.front().Read(buffer_, now);
    // What cannot be read now may be later; what is no number will not become one.
    if (!text.empty() && std::isnan(ParseNumber(text))) continue;
    entry.numbers.push_back(std::move(number));
    Series& s = series_.emplace_back();
    s.metric = Metric(field->decl);
    s.tags = found.device.tags;
  }
}

}  // namespace sonde::collect
