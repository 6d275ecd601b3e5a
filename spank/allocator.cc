// sbatch and salloc: nothing but the options.

#include "spank/plugin.h"

namespace sonde::spank {

void AllocatorInit() {
  // sbatch inside a step: the inherited values are that step's.
  OfferRendezvous("");
}

}  // namespace sonde::spank
