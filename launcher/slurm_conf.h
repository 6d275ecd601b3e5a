// What slurm.conf says of the network: srun's ports, and to which addresses Slurm binds.
//
// Slurm has no call for that which all releases share, so its files are read anew, as Slurm reads
// them: names in any case, several settings in a line, lines that go on after a backslash, and
// `include`.
//
// Thread safety: functions without state.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/text/settings.h"
#include "launcher/environment.h"

namespace sonde::launch {

struct SlurmNetwork {
  std::optional<PortRange> srun_ports;  // SrunPortRange
  // CommunicationParameters.
  bool ipv4 = true;           // not DisableIPv4
  bool ipv6 = false;          // EnableIPv6
  bool all_addresses = true;  // not NoInAddrAny, which TopologyParam may have as well
};

// Gives the text of a file.
using ReadConf = std::function<Result<std::string>(const std::string& path)>;

// Reads the file and what it includes; files that cannot be read count as empty. Paths are relative
// to the first file's directory. What comes last counts.
SlurmNetwork ReadSlurmNetwork(const std::string& path, const ReadConf& read);

// The same of SLURM_CONF, or of the file where Slurm looks for it.
SlurmNetwork ReadSlurmNetwork(const Environment& environment);

}  // namespace sonde::launch
