// slurm.conf, and what it says of the network: srun's ports, to which addresses Slurm binds, and
// how its messages are authenticated.
//
// Slurm has no call for that which all releases share, so its files are read anew, as Slurm reads
// them: names in any case, several settings in a line, lines that go on after a backslash, and
// `include`.
//
// Thread safety: functions without state.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "core/text/settings.h"
#include "launcher/environment.h"

namespace sonde::launch {

struct SlurmNetwork {
  std::optional<PortRange> srun_ports;  // SrunPortRange
  // CommunicationParameters.
  bool ipv4 = true;                  // not DisableIPv4
  bool ipv6 = false;                 // EnableIPv6
  bool all_addresses = true;         // not NoInAddrAny, which TopologyParam may have as well
  std::string munge_socket;          // AuthInfo's; "": where munge has it
  std::string slurmd_user = "root";  // SlurmdUser
};

// Gives the text of a file.
using ReadConf = std::function<Result<std::string>(const std::string& path)>;

// A setting's name and its value.
using SlurmSetting = std::pair<std::string_view, std::string_view>;
// The settings of one line.
using SlurmLine = std::span<const SlurmSetting>;
using OnSlurmLine = std::function<void(SlurmLine line)>;

// Reads a file of slurm.conf's; a large site's may have some MiB.
Result<std::string> ReadSlurmConfFile(const std::string& path);

// Calls `on_line` for each line of the file and of what it includes. Files that cannot be read
// count as empty; the error is that of the first. Paths are relative to the first file's directory.
Status ReadSlurmConf(const std::string& path, const ReadConf& read, const OnSlurmLine& on_line);

// The path in SLURM_CONF, or of the file where Slurm looks for it: etc/slurm.conf or
// etc/slurm/slurm.conf beside the directory of this process's program, which is one of Slurm's, or
// where distributions and slurmd have it. "" if there is none. `program`: a link to the program.
std::string FindSlurmConf(const Environment& environment,
                          const std::string& program = "/proc/self/exe");

// Whether a setting has that name, in any case.
bool IsSlurmSetting(const SlurmSetting& setting, std::string_view name);

// Gathers what lines say of the network; what comes last counts.
class SlurmNetworkLines {
 public:
  void Take(SlurmLine line);
  const SlurmNetwork& network() const { return network_; }

 private:
  SlurmNetwork network_;
  bool communication_ = false;  // NoInAddrAny in CommunicationParameters
  bool topology_ = false;       // and in TopologyParam
};

// Of what can be read.
SlurmNetwork ReadSlurmNetwork(const std::string& path, const ReadConf& read);

// The same of the file that FindSlurmConf finds.
SlurmNetwork ReadSlurmNetwork(const Environment& environment);

}  // namespace sonde::launch
