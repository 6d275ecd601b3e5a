#include "daemon/collect/read/mountinfo.h"

#include "daemon/collect/read/parse.h"

namespace sonde::collect {

// number parent major:minor ROOT POINT options [tags] - TYPE SOURCE SUPER_OPTIONS
bool ParseMountLine(std::string_view line, MountLine& mount) {
  constexpr std::string_view kSeparator = " - ";
  const size_t separator = line.find(kSeparator);
  if (separator == std::string_view::npos) return false;
  Cursor before(line.substr(0, separator));
  Cursor behind(line.substr(separator + kSeparator.size()));
  before.Word();
  before.Word();
  mount.device = before.Word();
  mount.root = before.Word();
  mount.point = before.Word();
  mount.type = behind.Word();
  mount.source = behind.Word();
  mount.super_options = behind.Word();
  return mount.root.starts_with('/') && mount.point.starts_with('/') && !mount.source.empty();
}

std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t k) { return static_cast<unsigned>(text[i + k]) - '0'; };
    if (text[i] == '\\' && i + 3 < text.size() && digit(1) <= 3 && digit(2) <= 7 && digit(3) <= 7) {
      plain += static_cast<char>(digit(1) * 64 + digit(2) * 8 + digit(3));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace sonde::collect
