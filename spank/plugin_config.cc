#include "spank/plugin_config.h"

#include <iterator>

#include "core/config.h"
#include "core/text/settings.h"
#include "launcher/read_file.h"
#include "launcher/site/node_counters.h"

namespace sonde::spank {
namespace {

bool SetBool(std::string_view text, bool& out) {
  const std::optional<bool> value = ParseSwitch(text);
  if (value) out = *value;
  return value.has_value();
}

bool SetEnable(std::string_view text, PluginConfig::Enable& out) {
  const std::optional<bool> value = ParseSwitch(text);
  if (!value && text != "accept") return false;
  using enum PluginConfig::Enable;
  out = !value ? kAccept : *value ? kYes : kNo;
  return true;
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
  // What sonde.conf switches off here, no variable switches on.
  bool launch::SitePolicy::*allows = nullptr;
};

constexpr Key kKeys[] = {
    {"monitor_steps", "SONDE_MONITOR_STEPS", "yes or no",
     [](PluginConfig& c, std::string_view v) { return SetBool(v, c.policy.monitor_steps); },
     &launch::SitePolicy::monitor_steps},
    {"monitor_batch", "SONDE_MONITOR_BATCH", "yes or no",
     [](PluginConfig& c, std::string_view v) { return SetBool(v, c.policy.monitor_batch); },
     &launch::SitePolicy::monitor_batch},
    {"monitor_interactive", "SONDE_MONITOR_INTERACTIVE", "yes or no",
     [](PluginConfig& c, std::string_view v) { return SetBool(v, c.policy.monitor_interactive); },
     &launch::SitePolicy::monitor_interactive},
    {"proxy_socket", "SONDE_PROXY_SOCKET", "yes or no",
     [](PluginConfig& c, std::string_view v) { return SetBool(v, c.policy.proxy_socket); },
     &launch::SitePolicy::proxy_socket},
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
  for (size_t i = 0; i < std::size(kKeys); ++i) {
    const Key& key = kKeys[i];
    if (key.name != name) continue;
    config.in_file |= 1u << i;
    if (key.set(config, value)) return {};
    return Expected(where, name, value, key.expected);
  }
  return {};
}

bool SetMachine(std::string_view text, PluginConfig& config) {
  using enum launch::SitePolicy::Machine;
  if (text != "exclusive" && text != "always" && text != "never") return false;
  config.policy.machine_counters = text == "exclusive" ? kExclusive
                                   : text == "always"  ? kAlways
                                                       : kNever;
  return true;
}

Status SetArgument(std::string_view argument, PluginConfig& config) {
  constexpr std::string_view kWhere = "plugstack.conf";
  const size_t eq = argument.find('=');
  const std::string_view name = argument.substr(0, eq);
  const std::string_view value =
      eq == std::string_view::npos ? std::string_view{} : argument.substr(eq + 1);
  // Also if the path is wrong: some file was meant.
  if (name == "config") config.path_named = true;
  const bool is_path =
      name == "sonded" || name == "config" || name == "libraries" || name == "state";
  if (is_path && !value.starts_with('/')) return Expected(kWhere, name, value, "an absolute path");
  if (name == "sonded") {
    config.sonded = value;
  } else if (name == "config") {
    config.path = value;
  } else if (name == "libraries") {
    config.libraries = value;
  } else if (name == "state") {
    config.state = value;
  } else if (name == "sonde" && !value.empty()) {
    config.sonde = value;
  } else if (name == "enable" && SetEnable(value, config.enable)) {
    return {};
  } else if (name == "machine_counters") {
    if (!SetMachine(value, config)) {
      return Expected(kWhere, name, value, "exclusive, always or never");
    }
  } else if (name == "sonde" || name == "enable") {
    return Expected(kWhere, name, value, name == "sonde" ? "a command" : "yes, no or accept");
  } else {
    return {Code::kInvalid, "plugstack.conf: unknown argument '" + std::string(name) +
                                "', expected sonded=, sonde=, config=, libraries=, state=, "
                                "machine_counters= or enable="};
  }
  return {};
}

}  // namespace

Status ParseArguments(int argc, char** argv, PluginConfig& config) {
  config.sonded = SONDE_SONDED_PATH;
  config.path = kDefaultConfigPath;
  config.libraries = SONDE_LIBRARY_PATH;
  config.state = launch::kStateDirectory;
  Status status;
  for (int i = 0; i < argc; ++i) KeepFirst(status, SetArgument(argv[i], config));
  return status;
}

Status ParseSondeConf(std::string_view text, std::string_view name, PluginConfig& config) {
  Status status;
  ForEachSetting(text, [&](const Setting& setting) {
    const std::string where = std::string(name) + ":" + std::to_string(setting.line);
    if (config.rules.Takes(setting)) {
      const std::string wrong = config.rules.Add(setting);
      if (!wrong.empty()) KeepFirst(status, {Code::kInvalid, where + ": " + wrong});
    } else if (DaemonSettings::Takes(setting)) {
      const std::string wrong = config.daemons.Add(setting);
      if (!wrong.empty()) KeepFirst(status, {Code::kInvalid, where + ": " + wrong});
    } else if (setting.value) {
      KeepFirst(status, SetKey(setting.name, *setting.value, where, config));
    }
    return true;
  });
  return status;
}

Status LoadSondeConf(const launch::Environment& environment, PluginConfig& config) {
  Status status;
  config.rules = SiteRules();
  config.daemons = DaemonSettings();
  Result<std::string> text = launch::ReadFile(config.path);
  const bool may_be_missing = !config.path_named && text.status().code() == Code::kNotFound;
  config.rules_known = text.ok() || may_be_missing;
  if (text.ok()) {
    status = ParseSondeConf(*text, config.path, config);
  } else if (!may_be_missing) {
    std::string message(text.status().message());
    if (config.path_named) message += " (config= in plugstack.conf)";
    status = {text.status().code(), std::move(message)};
  }
  for (size_t i = 0; i < std::size(kKeys); ++i) {
    const Key& key = kKeys[i];
    const bool site_says = key.allows != nullptr && (config.in_file & 1u << i) != 0;
    if (site_says && !(config.policy.*key.allows)) continue;
    const std::optional<std::string_view> value = environment.Find(key.variable);
    if (value && !key.set(config, *value)) {
      KeepFirst(status, Expected("environment", key.variable, *value, key.expected));
    }
  }
  return status;
}

}  // namespace sonde::spank
