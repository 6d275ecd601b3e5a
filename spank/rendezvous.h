// Where the daemons of a step meet: the socket on which srun's side listens, and the hidden option
// that tells the nodes the socket's port and the step's key.
//
// Slurm's messages carry the option, authenticated but not encrypted. Where Slurm authenticates by
// munge the key is wrapped by munge, for the user as whom slurmd runs: root alone can open it.
// Without munge it stands there as it is, and then only the keys that daemons make with each other
// (daemon/link/) keep what they say from somebody who listens.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/unique_fd.h"
#include "launcher/site/slurm_conf.h"
#include "spank/plugin_config.h"

namespace sonde::spank {

struct Listener {
  UniqueFd fd;
  uint16_t port = 0;
};

// A listening TCP socket, its port from `ports` or any free one. It has the addresses that Slurm's
// own sockets in srun have: the nodes have reached, or will reach, srun there.
Result<Listener> Listen(const launch::SlurmNetwork& network, std::optional<PortRange> ports);

// The ports on which the daemons of a step may listen: sonde.conf's port_range, else SrunPortRange;
// nullopt: any port.
std::optional<PortRange> AllowedPorts(const PluginConfig& config,
                                      const launch::SlurmNetwork& network);

inline constexpr size_t kKeyDigits = 64;

struct Rendezvous {
  uint16_t port = 0;  // 0: there is no head to meet
  std::string key;    // in the option it may be wrapped
};

// "PORT:KEY", as the hidden option carries it, with blanks behind it up to a fixed length. Nothing
// without a port or key.
std::optional<Rendezvous> ParseRendezvous(std::string_view text);
std::string RendezvousText(const Rendezvous& rendezvous);
// Stands there as long as others may see the option, and where there is no head. As long as any
// other, which may take its place.
std::string NoRendezvous();

// In srun: the key as it may go through Slurm's messages.
Result<std::string> WrapKey(const std::string& key, const launch::SlurmNetwork& network);
// On a node: the key that came. `environment`: slurmstepd's own, not the job's, for it leads to
// slurm.conf.
Result<std::string> OpenKey(const std::string& wrapped, const launch::Environment& environment);

}  // namespace sonde::spank
