// Where the daemons of a step meet: the socket on which srun's side listens, and the hidden option
// that tells the nodes the socket's port and the step's key.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/unique_fd.h"
#include "launcher/environment.h"
#include "spank/plugin_config.h"

namespace sonde::spank {

struct Listener {
  UniqueFd fd;
  uint16_t port = 0;
};

// A listening TCP socket on all addresses, its port from `range` or any free one.
Result<Listener> Listen(std::optional<PortRange> range);

// The ports that srun's listener may use: sonde.conf's port_range, else SrunPortRange of slurm.conf
// (SLURM_CONF, or where Slurm looks for it); nullopt: any port.
std::optional<PortRange> AllowedPorts(const PluginConfig& config,
                                      const launch::Environment& environment);

inline constexpr size_t kKeyDigits = 64;

struct Rendezvous {
  uint16_t port = 0;  // 0: there is no head to meet
  std::string key;
};

// "PORT:KEY", as the hidden option carries it. Nothing without a key.
std::optional<Rendezvous> ParseRendezvous(std::string_view text);

// Stands in the key's place as long as others may see the option.
inline std::string NoKey() { return std::string(kKeyDigits, '0'); }

}  // namespace sonde::spank
