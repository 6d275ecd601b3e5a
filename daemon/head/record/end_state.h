// How a step ended, from what its nodes say of their tasks.
//
// Thread safety: functions without state.
#pragma once

#include "core/job.h"
#include "daemon/message/message.h"

namespace sonde::head {

// slurmstepd tells of every task's end; if it was killed, nobody knows.
bool EndUnknown(const tree::Bye& ends);

// `ends` of all nodes together; `out_of_memory_kills` of their control groups, NaN: not known.
EndState StateOf(const tree::Bye& ends, double out_of_memory_kills);

}  // namespace sonde::head
