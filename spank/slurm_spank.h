// Slurm's plugin interface as C++ may include it: some releases declare the callbacks outside their
// own extern "C" block. Slurm's functions that write lines have the plugin's in front of them.
#pragma once

extern "C" {
#include <slurm/slurm.h>
#include <slurm/spank.h>
}

#include "spank/user/tell.h"

static_assert(SLURM_VERSION_NUMBER == SONDE_SLURM_NUMBER,
              "the compiler found headers of another Slurm than CMake (cmake/Slurm.cmake)");
