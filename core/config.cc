#include "core/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <sstream>

#include "core/text/daemon_settings.h"
#include "core/text/settings.h"
#include "core/text/site_rules.h"

namespace sonde {
namespace {

Status ParseBool(std::string_view text, bool& out) {
  const std::optional<bool> value = ParseSwitch(text);
  if (!value) return {Code::kInvalid, "expected yes or no"};
  out = *value;
  return {};
}

template <typename T>
Status ParseNumber(std::string_view text, uint64_t low, uint64_t high, T& out) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return {Code::kInvalid, fmt::format("expected a whole number from {} to {}", low, high)};
  }
  out = static_cast<T>(value);
  return {};
}

// "64M": bytes with an optional K, M or G (powers of 1024).
Status ParseSize(std::string_view text, uint64_t low, uint64_t& out) {
  uint64_t factor = 1;
  if (!text.empty()) {
    switch (text.back()) {
      case 'K':
        factor = 1ull << 10;
        break;
      case 'M':
        factor = 1ull << 20;
        break;
      case 'G':
        factor = 1ull << 30;
        break;
      default:
        break;
    }
    if (factor != 1) text.remove_suffix(1);
  }
  uint64_t value = 0;
  if (!ParseNumber(text, 0, 1ull << 33, value).ok() || value * factor < low) {
    return {Code::kInvalid,
            fmt::format("expected a size of at least {} bytes, such as 64M (K, M, G are powers of "
                        "1024)",
                        low)};
  }
  out = value * factor;
  return {};
}

constexpr uint64_t kMany = 1'000'000'000;

Status OneOf(std::string_view text, std::initializer_list<std::string_view> allowed,
             std::string& out) {
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) {
    return out = text, Status();
  }
  return {Code::kInvalid, fmt::format("expected one of {}", fmt::join(allowed, ", "))};
}

Status ParseTime(std::string_view text, Nanos& out) {
  Result<Nanos> value = ParseDuration(text);
  if (!value.ok()) return value.status();
  out = *value;
  return {};
}

Status SetPortRange(std::string_view text, std::string& out) {
  if (!text.empty() && !ParsePortRange(text)) {
    return {Code::kInvalid, "expected two ports such as 60000-60100"};
  }
  out = text;
  return {};
}

// "auto", "none", or names such as "cxi,verbs,tcp"; blanks around them are dropped.
Status ParseProviders(std::string_view text, std::string& out) {
  std::string names;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view name = TrimLine(text.substr(0, comma));
    const bool alone = names.empty() && comma == std::string_view::npos;
    if (name.empty() || ((name == "auto" || name == "none") && !alone)) {
      return {Code::kInvalid,
              "expected auto, none, or names of libfabric's providers such as cxi,verbs,tcp, the "
              "preferred first"};
    }
    if (!names.empty()) names += ',';
    names += name;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  out = std::move(names);
  return {};
}

Status ParseHeaderName(std::string_view text, std::string& out) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
  });
  if (!plain) return {Code::kInvalid, "expected the name of a header, such as X-Remote-User"};
  out = text;
  return {};
}

Status Any(std::string_view text, std::string& out) {
  out = text;
  return {};
}

Status ParseUrl(std::string_view text, std::string& out) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (plain && (text.empty() || text.starts_with("http://") || text.starts_with("https://"))) {
    return out = text, Status();
  }
  return {Code::kInvalid, "expected a URL that begins with http:// or https://"};
}

// "https://grafana.example.org", several of them, or "*".
Status ParseOrigins(std::string_view text, std::string& out) {
  std::string origins;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view one = TrimLine(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t host = one.find("://");
    const bool plain =
        std::all_of(one.begin(), one.end(), [](char c) { return c > 0x20 && c < 0x7f; });
    const bool origin = (one.starts_with("http://") || one.starts_with("https://")) &&
                        one.size() > host + 3 && one.find('/', host + 3) == std::string_view::npos;
    if (!plain || (one != "*" && !origin)) {
      return {Code::kInvalid,
              "expected origins such as https://grafana.example.org, separated by commas, or *"};
    }
    if (!origins.empty()) origins += ',';
    origins += one;
  }
  out = std::move(origins);
  return {};
}

Status ParseNan(std::string_view text, bool& null) {
  if (text != "null" && text != "text") return {Code::kInvalid, "expected null or text"};
  null = text == "null";
  return {};
}

// A number such as 380 or 1.25; nothing, which is as if there were no such line.
Status ParseDecimal(std::string_view text, double low, double high, std::optional<double>& out) {
  if (text.empty()) return out.reset(), Status();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(value >= low && value <= high)) {
    return {Code::kInvalid, fmt::format("expected a number from {} to {}", low, high)};
  }
  return out = value, Status();
}

struct Key {
  std::string_view name;
  std::function<Status(Config&, std::string_view)> set;
};

// The one list of keys, besides those of core/text/site_rules.cc and daemon_settings.cc, which no
// variable overrides; sonde.conf(5) is written from all three.
const std::vector<Key>& Keys() {
  using V = std::string_view;
  static const std::vector<Key> keys = {
      {"monitor_steps", [](Config& c, V v) { return ParseBool(v, c.monitor_steps); }},
      {"monitor_batch", [](Config& c, V v) { return ParseBool(v, c.monitor_batch); }},
      {"monitor_interactive", [](Config& c, V v) { return ParseBool(v, c.monitor_interactive); }},
      {"report",
       [](Config& c, V v) {
         return OneOf(v, {"full", "short", "off"}, c.report);
       }},
      {"proxy_socket", [](Config& c, V v) { return ParseBool(v, c.proxy_socket); }},
      {"fanout", [](Config& c, V v) { return ParseNumber(v, 2, Config::kMaxFanout, c.fanout); }},
      {"direct_nodes", [](Config& c, V v) { return ParseNumber(v, 1, 1'000'000, c.direct_nodes); }},
      {"provider", [](Config& c, V v) { return ParseProviders(v, c.provider); }},
      {"interface", [](Config& c, V v) { return Any(v, c.interface); }},
      {"fabric_after", [](Config& c, V v) { return ParseTime(v, c.fabric_after); }},
      {"port_range", [](Config& c, V v) { return SetPortRange(v, c.port_range); }},
      {"http", [](Config& c, V v) { return Any(v, c.http); }},
      {"http_port", [](Config& c, V v) { return ParseNumber(v, 0, 65535, c.http_port); }},
      {"http_cors", [](Config& c, V v) { return ParseOrigins(v, c.http_cors); }},
      {"opentsdb_nan", [](Config& c, V v) { return ParseNan(v, c.opentsdb_nan_null); }},
      {"archive", [](Config& c, V v) { return Any(v, c.archive); }},
      {"profile_limit", [](Config& c, V v) { return ParseSize(v, 1 << 20, c.profile_limit); }},
      {"node_memory", [](Config& c, V v) { return ParseSize(v, 1 << 18, c.node_memory); }},
      {"ask_slurm", [](Config& c, V v) { return ParseBool(v, c.ask_slurm); }},
      {"keep_environment", [](Config& c, V v) { return ParseBool(v, c.keep_environment); }},
      {"keep_age", [](Config& c, V v) { return ParseTime(v, c.keep_age); }},
      {"keep_profiles", [](Config& c, V v) { return ParseNumber(v, 0, kMany, c.keep_profiles); }},
      {"keep_size", [](Config& c, V v) { return ParseSize(v, 0, c.keep_size); }},
      {"keep_user_profiles",
       [](Config& c, V v) { return ParseNumber(v, 0, kMany, c.keep_user_profiles); }},
      {"keep_user_size", [](Config& c, V v) { return ParseSize(v, 0, c.keep_user_size); }},
      {"site_archives", [](Config& c, V v) { return Any(v, c.site_archives); }},
      {"site_account", [](Config& c, V v) { return Any(v, c.site_account); }},
      {"site_admins", [](Config& c, V v) { return Any(v, c.site_admins); }},
      {"site_proxy", [](Config& c, V v) { return Any(v, c.site_proxy); }},
      {"site_proxy_secret", [](Config& c, V v) { return Any(v, c.site_proxy_secret); }},
      {"site_user_header", [](Config& c, V v) { return ParseHeaderName(v, c.site_user_header); }},
      {"site_open", [](Config& c, V v) { return ParseNumber(v, 1, 4096, c.site_open); }},
      {"peaks", [](Config& c, V v) { return Any(v, c.peaks); }},
      {"carbon_g_per_kwh",
       [](Config& c, V v) { return ParseDecimal(v, 0, 10'000, c.carbon_g_per_kwh); }},
      {"pue", [](Config& c, V v) { return ParseDecimal(v, 1, 10, c.pue); }},
      {"alarms", [](Config& c, V v) { return ParseBool(v, c.alarms); }},
      {"alarm_rules", [](Config& c, V v) { return Any(v, c.alarm_rules); }},
      {"alarm_command", [](Config& c, V v) { return Any(v, c.alarm_command); }},
      {"alarm_webhook", [](Config& c, V v) { return ParseUrl(v, c.alarm_webhook); }},
      {"forward", [](Config& c, V v) { return ParseBool(v, c.forward); }},
      {"log_dir", [](Config& c, V v) { return Any(v, c.log_dir); }},
      {"syslog", [](Config& c, V v) { return ParseBool(v, c.syslog); }},
      {"log_level",
       [](Config& c, V v) {
         return OneOf(v, {"debug", "info", "warning", "error"}, c.log_level);
       }},
  };
  return keys;
}

Status SetKey(std::string_view name, std::string_view value, std::set<std::string_view>& seen,
              Config& config) {
  // Lines whose names the user chooses; the code that uses them reads their values.
  for (const auto& [prefix, lines] :
       {std::pair{std::string_view("alarm."), &config.alarm_lines},
        std::pair{std::string_view("forward."), &config.forward_lines}}) {
    if (!name.starts_with(prefix)) continue;
    if (!seen.insert(name).second) {
      return {Code::kInvalid, fmt::format("{} is given twice", name)};
    }
    lines->emplace_back(name.substr(prefix.size()), value);
    return {};
  }
  for (const Key& key : Keys()) {
    if (key.name != name) continue;
    if (!seen.insert(key.name).second) {
      return {Code::kInvalid, fmt::format("{} is given twice", name)};
    }
    return key.set(config, value).Within(fmt::format("{} = {}", name, value));
  }
  return {Code::kInvalid, fmt::format("unknown key '{}'", name)};
}

// Told of every wrong line and variable, which leave `config` as it is. Whether to go on.
using OnWrong = std::function<bool(Status)>;

void ApplyEnvironment(Config& config, const OnWrong& wrong) {
  for (const Key& key : Keys()) {
    std::string name = "SONDE_";
    for (const char c : key.name) name += static_cast<char>(std::toupper(c));
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) continue;
    Status status = key.set(config, value).Within(fmt::format("environment {}={}", name, value));
    if (!status.ok() && !wrong(std::move(status))) return;
  }
}

void ApplyText(std::string_view text, std::string_view name, Config& config,
               const OnWrong& on_wrong) {
  SiteRules rules;  // the plugin's to apply, as most of the next; here they are checked
  DaemonSettings daemons;
  std::set<std::string_view> seen;
  ForEachSetting(text, [&](const Setting& setting) {
    Status status;
    if (rules.Takes(setting)) {
      std::string wrong = rules.Add(setting);
      if (!wrong.empty()) status = Status(Code::kInvalid, std::move(wrong));
    } else if (DaemonSettings::Takes(setting)) {
      std::string wrong = daemons.Add(setting);
      if (!wrong.empty()) status = Status(Code::kInvalid, std::move(wrong));
    } else if (setting.value) {
      status = SetKey(setting.name, *setting.value, seen, config);
    } else {
      status = Status(Code::kInvalid, "expected key = value");
    }
    return status.ok() || on_wrong(status.Within(fmt::format("{}:{}", name, setting.line)));
  });
  config.ask_filesystems = daemons.ask_filesystems;
}

std::string TextOf(const std::string& path) {
  std::stringstream text;
  if (std::ifstream file(path); file) text << file.rdbuf();
  return std::move(text).str();
}

// Stops at the first.
OnWrong Keep(Status& first) {
  return [&first](Status status) {
    first = std::move(status);
    return false;
  };
}

}  // namespace

Result<Config> ParseConfig(std::string_view text, std::string_view name) {
  Config config;
  Status wrong;
  ApplyText(text, name, config, Keep(wrong));
  if (!wrong.ok()) return wrong;
  return config;
}

Result<Config> LoadConfig(const std::string& path) {
  Result<Config> config = ParseConfig(TextOf(path), path);
  if (!config.ok()) return config;
  Status wrong;
  ApplyEnvironment(*config, Keep(wrong));
  if (!wrong.ok()) return wrong;
  return config;
}

Config LoadWhatIsRight(const std::string& path, Status& wrong) {
  Config config;
  const OnWrong keep_first = [&wrong](Status status) {
    if (wrong.ok()) wrong = std::move(status);
    return true;
  };
  ApplyText(TextOf(path), path, config, keep_first);
  ApplyEnvironment(config, keep_first);
  return config;
}

std::string ArchivePath(const Config& config, std::string_view user, uint32_t uid,
                        std::string_view home) {
  if (config.archive.empty()) return std::string(home) + "/.local/share/sonde";
  std::string path;
  for (size_t i = 0; i < config.archive.size(); ++i) {
    if (config.archive[i] != '%' || i + 1 == config.archive.size()) {
      path += config.archive[i];
      continue;
    }
    switch (config.archive[++i]) {
      case 'u':
        path += user;
        break;
      case 'U':
        path += std::to_string(uid);
        break;
      case 'h':
        path += home;
        break;
      default:
        path += config.archive[i];
    }
  }
  return path;
}

}  // namespace sonde
