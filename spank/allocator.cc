// sbatch and salloc: nothing but the options.

#include <unistd.h>

#include "spank/plugin.h"
#include "spank/site_grant.h"

namespace sonde::spank {

void AllocatorInit() {
  // sbatch inside a step: the inherited values are that step's.
  OfferRendezvous("");
}

void AllocatorInitPostOpt(Context& context) {
  if (context.options.asked.level.value_or(0) == 0) return;
  const launch::Environment environment(environ);
  // What is wrong with sonde.conf is told where a step is watched.
  static_cast<void>(LoadSondeConf(environment, context.config));
  if (!context.config.rules_known || context.config.rules.DependOnAllocation()) return;
  GrantInCommand(environment, context.config, context.options);
  TellLowered(context);
}

}  // namespace sonde::spank
