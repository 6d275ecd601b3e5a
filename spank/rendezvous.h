// Where the daemons of a step meet: the socket srun's side listens on, and the hidden option that
// tells the nodes its port and the step's key.
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

// The ports a listener of srun's may have: sonde.conf's port_range, else SrunPortRange of
// slurm.conf (SLURM_CONF, or where Slurm looks for it), else none: any.
std::optional<PortRange> AllowedPorts(const PluginConfig& config,
                                      const launch::Environment& environment);

inline constexpr size_t kKeyDigits = 64;

struct Rendezvous {
  uint16_t port = 0;  // 0: there is no head to meet
  std::string key;
};

// "PORT:KEY", as the hidden option carries it. Nothing without a key.
std::optional<Rendezvous> ParseRendezvous(std::string_view text);

// In the key's place as long as the option may be seen by others.
inline std::string NoKey() { return std::string(kKeyDigits, '0'); }

}  // namespace sonde::spank
