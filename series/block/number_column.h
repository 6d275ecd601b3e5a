// Doubles as bytes, each back bit for bit: one value, whole numbers or decimals of up to three
// places as the varints of their differences, or as they are, whichever is the least. What a node's
// counters and gauges are takes one to three bytes a value so, at some 3 ns each; a block's codec
// is denser, but takes ten times as long.
//
// Thread safety: functions without state.
#pragma once

#include <span>

#include "core/bytes.h"

namespace sonde {

void WriteNumbers(std::span<const double> values, ByteWriter& out);
// Reads as many as `values` has. Turns `in` bad on what WriteNumbers cannot have written.
void ReadNumbers(ByteReader& in, std::span<double> values);

}  // namespace sonde
