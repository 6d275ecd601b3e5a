// sonde.conf: strict key = value lines.
//
// '#' starts a comment, blank lines are passed over. An unknown key, a key given twice and a value
// outside its range are errors that name the file and the line. A file that does not exist is an
// empty one. The environment overrides the file: key `http_port` is SONDE_HTTP_PORT.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"

namespace sonde {

inline constexpr std::string_view kDefaultConfigPath = "/etc/sonde/sonde.conf";

struct Config {
  // What is monitored when a level is asked for.
  bool monitor_steps = true;         // steps of srun
  bool monitor_batch = true;         // the batch step, when sbatch got the option
  bool monitor_interactive = false;  // the interactive step of salloc

  // Report on srun's stderr: "full", "short" (one line) or "off".
  std::string report = "short";

  // Whether programs for metric-proxy find a socket of the step (launcher/proxy_socket.h).
  bool proxy_socket = true;

  // Tree.
  static constexpr uint32_t kMaxFanout = 256;
  uint32_t fanout = 16;  // 2 to kMaxFanout
  // Nodes of steps of more nodes than this come to the head through others (gateways). 1 to a
  // million.
  uint32_t direct_nodes = 1024;
  // Links between nodes: "auto": over the machine's own fabric, else "sockets"; "sockets";
  // libfabric providers, the preferred first, separated by commas; "none": all nodes send to the
  // head.
  std::string provider = "auto";
  std::string interface;         // an address, "ib0", "cxi0"; "": the one towards the head
  Nanos fabric_after = kSecond;  // shorter steps have no links between nodes
  std::string port_range;        // "60000-60100": where daemons listen; "": SrunPortRange

  // HTTP of the head and of `sonde serve`.
  std::string http = "loopback";   // loopback, off, or the name of an interface's address
  uint16_t http_port = 0;          // 0: any free one
  std::string http_cors;           // origins whose pages may ask, separated by commas; "*": all
  bool opentsdb_nan_null = false;  // NaN and infinity are null in OpenTSDB's answers, not texts

  // DaemonSettings::ask_filesystems; the file's alone, no variable overrides it.
  std::string ask_filesystems;

  // Archive.
  std::string archive;                   // "" : $HOME/.local/share/sonde; %u user, %U uid, %h home
  uint64_t profile_limit = 64ull << 20;  // bytes of blocks per profile, divided among its nodes
  uint64_t node_memory = 8ull << 20;     // bytes of sealed blocks a node daemon keeps
  bool ask_slurm = true;                 // squeue, for what the job asked for and why it ended
  bool keep_environment = true;          // SLURM_*, OMP_* and modules, in profiles
  // Limits of the archive, which keeps the newest profiles; 0: no limit.
  Nanos keep_age = 0;
  uint64_t keep_profiles = 0;
  uint64_t keep_size = 0;           // bytes
  uint64_t keep_user_profiles = 0;  // of each user
  uint64_t keep_user_size = 0;

  // `sonde serve --site` (serve/site/gatekeeper.h).
  std::string site_archives;  // as `archive`; "": the same as `archive`
  std::string site_account;   // the door has its rights; "": nobody's
  std::string site_admins;    // users and @groups, separated by commas: they see all archives
  std::string site_proxy;     // the account of a reverse proxy on this machine; "": none
  std::string
      site_proxy_secret;  // a file with the secret that a proxy's requests must carry; "": none
  std::string site_user_header;  // header in which a proxy names the user; "": none
  uint32_t site_open = 64;       // archives that are open at a time, 1 to 4096

  // What `sonde roofline` and `sonde energy` need to know of the site.
  std::string peaks;                       // its file (insight/steps/peaks_file.h); "": it has none
  std::optional<double> carbon_g_per_kwh;  // grams of CO2e for a kWh of its electricity
  std::optional<double> pue;               // what the whole site draws / what computers draw

  // Alarms (series/alarm/rule.h).
  bool alarms = true;         // rules are evaluated, built-in ones too
  std::string alarm_rules;    // a file of rules
  std::string alarm_command;  // run when an alarm is raised or over: a program and arguments
  std::string alarm_webhook;  // told by POST: an http or https URL
  // alarm.NAME = RULE, or off; as written in the file.
  std::vector<std::pair<std::string, std::string>> alarm_lines;

  // Sending running steps on to other databases (forward/formats/destination.h).
  bool forward = true;
  // forward.NAME = URL [option=value]...; as written in the file.
  std::vector<std::pair<std::string, std::string>> forward_lines;

  std::string log_dir;             // "" : daemons log nothing to files
  bool syslog = false;             // warnings and errors go to the system's log as well
  std::string log_level = "info";  // debug, info, warning, error

  bool operator==(const Config&) const = default;
};

// Parses the file's text; `name` is for messages.
Result<Config> ParseConfig(std::string_view text, std::string_view name);

// Reads the file, then the environment.
Result<Config> LoadConfig(const std::string& path);
// The same, without what is wrong; `wrong` says what is wrong first. For daemons: a site may use a
// key of the next release when some hosts have this one still, and all else must hold there.
Config LoadWhatIsRight(const std::string& path, Status& wrong);

// The archive directory of a user: SONDE_ARCHIVE, the config's pattern, or the default in `home`.
std::string ArchivePath(const Config& config, std::string_view user, uint32_t uid,
                        std::string_view home);

}  // namespace sonde
