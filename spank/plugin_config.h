// What the administrator tells the plugin: the arguments of its line in plugstack.conf and the
// few keys of sonde.conf that matter before a daemon runs.
//
//   optional spank_sonde.so sonded=/usr/libexec/sonde/sonded config=/etc/sonde/sonde.conf
//     machine_counters=exclusive
//
// The daemon reads and checks the whole of sonde.conf; the plugin reads only these keys, and for a
// wrong value keeps the default and gives a message. core/config.h, which does the same for
// the daemon, needs libraries that must not be loaded into srun.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "core/text/daemon_settings.h"
#include "core/text/settings.h"
#include "core/text/site_rules.h"
#include "launcher/environment.h"
#include "launcher/site/site_policy.h"

namespace sonde::spank {

struct PluginConfig {
  // Of plugstack.conf.
  // enable=no: as if the plugin were not there; accept: the options are there and do nothing.
  enum class Enable : unsigned char { kYes, kNo, kAccept };
  Enable enable = Enable::kYes;
  std::string sonded;           // path of the daemon
  std::string sonde = "sonde";  // the command as the hint at the start names it
  std::string path;             // sonde.conf
  bool path_named = false;      // by config=
  std::string state;            // state=: the directory of the node's counters
  std::string libraries;        // the directory of libsonde.so.1, with sonde/ in it
  // machine_counters= of plugstack.conf, monitor_* and proxy_socket of sonde.conf
  launch::SitePolicy policy;
  // Of sonde.conf; see core/config.h.
  SiteRules rules;
  DaemonSettings daemons;
  bool report = true;  // anything but "off"
  std::string port_range;
  // What the site decides. Not known if sonde.conf cannot be read; then no step is watched.
  bool rules_known = true;
  uint32_t in_file = 0;  // a bit for each key of the plugin's that sonde.conf has
};

// Parses the arguments of plugstack.conf. An unknown argument or a wrong value is an error that
// names it; the other arguments still count.
Status ParseArguments(int argc, char** argv, PluginConfig& config);

// Parses sonde.conf's text; `name` is for messages. Gives the first error; right values count.
Status ParseSondeConf(std::string_view text, std::string_view name, PluginConfig& config);

// Reads config.path, then SONDE_<KEY> in the environment. The site's rules are the file's alone,
// and what the file switches off (monitor_..., proxy_socket) no variable switches on. Only a file
// that plugstack.conf does not name may be missing: what the site decides is the defaults then.
Status LoadSondeConf(const launch::Environment& environment, PluginConfig& config);

}  // namespace sonde::spank
