// What the launcher and the daemons tell each other, both ways: the lifeline's packets as the
// node's daemon reads them, and, as slurmstepd does, which is root, what the user's daemon asks to
// be opened; the hidden option, and the files and options that the plugin reads. The first byte
// chooses.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/text/options.h"
#include "daemon/collect/gpu/selection.h"
#include "daemon/node/launcher/task_packet.h"
#include "launcher/launch.h"
#include "launcher/machine_open.h"
#include "launcher/perf_open.h"
#include "launcher/site/slurm_conf.h"
#include "spank/plugin_config.h"
#include "spank/rendezvous.h"

namespace {

using namespace sonde;

void TryTaskPacket(std::string_view body) {
  const node::TaskPacket task = node::ParseTaskPacket(body);
  if (task.perf.size() > launch::kMaxEvents) std::abort();
}

// Whatever is asked for, nothing is opened that the plugin does not know: here there are no
// devices.
void TryEvents(std::string_view packet) {
  const auto asked = launch::ParseEvents(packet);
  if (!asked.ok()) return;
  if (asked->task.size() > launch::kMaxEvents) std::abort();
  if (asked->machine.size() > launch::kMaxMachineEvents) std::abort();
  if (!launch::OpenMachineEvents(asked->machine, "/nonexistent").fds.empty()) std::abort();
}

void TryRendezvous(std::string_view text) {
  const auto found = spank::ParseRendezvous(text);
  if (found && found->port != 0 && found->key.size() != spank::kKeyDigits) std::abort();
}

void TryOptions(std::string_view text) {
  const int level = ParseLevel(text);
  if (level < -1 || level > 4) std::abort();
  const int64_t period = ParsePeriod(text);
  if (period != -1 && (period < 10'000'000 || period > 3'600'000'000'000)) std::abort();
  (void)ValidEventList(text);
}

void TryFiles(std::string_view text) {
  spank::PluginConfig config;
  (void)spank::ParseSondeConf(text, "sonde.conf", config).ok();
  // Every file that it includes is the same.
  const auto network = launch::ReadSlurmNetwork("/etc/slurm/slurm.conf", [&](const std::string&) {
    return Result<std::string>(std::string(text));
  });
  for (const auto& range : {ParsePortRange(text), network.srun_ports}) {
    if (range && (range->first == 0 || range->second < range->first)) std::abort();
  }
  if (launch::CountListed(text) < 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      TryTaskPacket(bytes);
      break;
    case 1:
      TryEvents(bytes);
      break;
    case 2:
      TryRendezvous(bytes);
      break;
    case 3:
      TryOptions(bytes);
      break;
    case 4:
      TryFiles(bytes);
      break;
    default: {
      const collect::gpu::Selection selection(bytes);
      for (unsigned i = 0; i < 4; ++i) (void)selection.HasNumber(i);
    }
  }
  return 0;
}
