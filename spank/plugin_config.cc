#include "spank/plugin_config.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "core/config.h"
#include "spank/unique_fd.h"

namespace sonde::spank {
namespace {

constexpr size_t kMaxFile = 1 << 20;

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

// Calls f(line, number) for every line, its comment cut off, that is not blank.
template <typename F>
void ForEachLine(std::string_view text, F&& f) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t eol = text.find('\n');
    std::string_view line = text.substr(0, eol);
    line = Trim(line.substr(0, line.find('#')));
    if (!line.empty()) f(line, number);
    if (eol == std::string_view::npos) break;
    text.remove_prefix(eol + 1);
  }
}

bool SetBool(std::string_view text, bool& out) {
  const bool yes = text == "yes" || text == "true" || text == "on" || text == "1";
  const bool no = text == "no" || text == "false" || text == "off" || text == "0";
  if (yes || no) out = yes;
  return yes || no;
}

bool SetReport(PluginConfig& config, std::string_view text) {
  if (text != "full" && text != "short" && text != "off") return false;
  config.report = text != "off";
  return true;
}

bool SetPortRange(PluginConfig& config, std::string_view text) {
  if (!text.empty() && !ParsePortRange(text)) return false;
  config.port_range = text;
  return true;
}

struct Key {
  std::string_view name;
  std::string_view variable;
  std::string_view expected;
  bool (*set)(PluginConfig&, std::string_view);
};

constexpr Key kKeys[] = {
    {"monitor_steps", "SONDE_MONITOR_STEPS", "yes or no",
     [](PluginConfig& c, std::string_view v) { return SetBool(v, c.monitor_steps); }},
    {"monitor_batch", "SONDE_MONITOR_BATCH", "yes or no",
     [](PluginConfig& c, std::string_view v) { return SetBool(v, c.monitor_batch); }},
    {"monitor_interactive", "SONDE_MONITOR_INTERACTIVE", "yes or no",
     [](PluginConfig& c, std::string_view v) { return SetBool(v, c.monitor_interactive); }},
    {"report", "SONDE_REPORT", "full, short or off", SetReport},
    {"port_range", "SONDE_PORT_RANGE", "two ports such as 60000-60100", SetPortRange},
};

Status Expected(std::string_view where, std::string_view name, std::string_view value,
                std::string_view expected) {
  std::string text(where);
  text.append(": ").append(name).append("=").append(value.substr(0, 128));
  return {Code::kInvalid, text.append(": expected ").append(expected)};
}

void KeepFirst(Status& first, Status next) {
  if (first.ok()) first = std::move(next);
}

Status SetKey(std::string_view name, std::string_view value, std::string_view where,
              PluginConfig& config) {
  for (const Key& key : kKeys) {
    if (key.name != name) continue;
    if (key.set(config, value)) return {};
    return Expected(where, name, value, key.expected);
  }
  return {};
}

bool SetMachine(std::string_view text, PluginConfig& config) {
  using enum PluginConfig::Machine;
  if (text != "exclusive" && text != "always" && text != "never") return false;
  config.machine_counters = text == "exclusive" ? kExclusive : text == "always" ? kAlways : kNever;
  return true;
}

Status SetArgument(std::string_view argument, PluginConfig& config) {
  constexpr std::string_view kWhere = "plugstack.conf";
  const size_t eq = argument.find('=');
  const std::string_view name = argument.substr(0, eq);
  const std::string_view value =
      eq == std::string_view::npos ? std::string_view{} : argument.substr(eq + 1);
  const bool is_path = name == "sonded" || name == "config" || name == "libraries";
  if (is_path && !value.starts_with('/')) return Expected(kWhere, name, value, "an absolute path");
  if (name == "sonded") {
    config.sonded = value;
  } else if (name == "config") {
    config.path = value;
  } else if (name == "libraries") {
    config.libraries = value;
  } else if (name == "sonde" && !value.empty()) {
    config.sonde = value;
  } else if (name == "enable" && SetBool(value, config.enable)) {
    return {};
  } else if (name == "machine_counters") {
    if (!SetMachine(value, config)) {
      return Expected(kWhere, name, value, "exclusive, always or never");
    }
  } else if (name == "sonde" || name == "enable") {
    return Expected(kWhere, name, value, name == "sonde" ? "a command" : "yes or no");
  } else {
    return {Code::kInvalid,
            "plugstack.conf: unknown argument '" + std::string(name) +
                "', expected sonded=, sonde=, config=, libraries=, machine_counters= or enable="};
  }
  return {};
}

}  // namespace

Status ParseArguments(int argc, char** argv, PluginConfig& config) {
  config.sonded = SONDE_SONDED_PATH;
  config.path = kDefaultConfigPath;
  config.libraries = SONDE_LIBRARY_PATH;
  Status status;
  for (int i = 0; i < argc; ++i) KeepFirst(status, SetArgument(argv[i], config));
  return status;
}

Status ParseSondeConf(std::string_view text, std::string_view name, PluginConfig& config) {
  Status status;
  ForEachLine(text, [&](std::string_view line, int number) {
    const size_t eq = line.find('=');
    if (eq == std::string_view::npos) return;
    const std::string where = std::string(name) + ":" + std::to_string(number);
    KeepFirst(status, SetKey(Trim(line.substr(0, eq)), Trim(line.substr(eq + 1)), where, config));
  });
  return status;
}

Status LoadSondeConf(const Environment& environment, PluginConfig& config) {
  Status status;
  Result<std::string> text = ReadFile(config.path);
  if (text.ok()) {
    status = ParseSondeConf(*text, config.path, config);
  } else if (text.status().code() != Code::kNotFound) {
    status = text.status();
  }
  for (const Key& key : kKeys) {
    const std::optional<std::string_view> value = environment.Find(key.variable);
    if (value && !key.set(config, *value)) {
      KeepFirst(status, Expected("environment", key.variable, *value, key.expected));
    }
  }
  return status;
}

std::optional<PortRange> ParsePortRange(std::string_view text) {
  PortRange range;
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits, uint16_t& out) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return error == std::errc() && end == digits.data() + digits.size() && out > 0;
  };
  if (!number(text.substr(0, dash), range.first) || !number(text.substr(dash + 1), range.second) ||
      range.first > range.second) {
    return std::nullopt;
  }
  return range;
}

std::optional<PortRange> FindSrunPortRange(std::string_view slurm_conf) {
  std::optional<PortRange> range;
  ForEachLine(slurm_conf, [&](std::string_view line, int) {
    const size_t eq = line.find('=');
    if (eq == std::string_view::npos) return;
    if (EqualsIgnoringCase(Trim(line.substr(0, eq)), "SrunPortRange")) {
      range = ParsePortRange(Trim(line.substr(eq + 1)));
    }
  });
  return range;
}

Result<std::string> ReadFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return SystemError("open " + path);
  std::string text;
  while (text.size() <= kMaxFile) {
    char buffer[4096];
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("read " + path);
    text.append(buffer, static_cast<size_t>(got));
  }
  return Status(Code::kLimit, "read " + path + ": longer than 1 MiB");
}

}  // namespace sonde::spank
