// Doubles as bytes, each back bit for bit: one value, or the varints of the differences of whole
// numbers or decimals of up to three places, or the doubles as they are, whichever is smallest.
// So a node's counters and gauges take one to three bytes a value, at some 3 ns each; a block's
// codec is denser, but takes ten times as long.
//
// Thread safety: functions without state.
#pragma once

#include <span>

#include "core/bytes.h"

namespace sonde {

void WriteNumbers(std::span<const double> values, ByteWriter& out);
// Reads as many numbers as `values` has. Turns `in` bad on what WriteNumbers cannot have written.
void ReadNumbers(ByteReader& in, std::span<double> values);

}  // namespace sonde
