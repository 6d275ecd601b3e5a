#include "daemon/head/record/open_spreads.h"

#include <algorithm>

#include "core/bytes.h"

namespace sonde::head {

void OpenSpreads::Add(Nanos tick, std::span<const QuantileSketch> spreads) {
  if (bytes_ > kMaxBytes) return;
  if (used_ == ticks_.size()) ticks_.emplace_back();
  Tick& row = ticks_[used_++];
  row.tick = tick;
  row.bytes.clear();
  ByteWriter out(row.bytes);
  for (const QuantileSketch& spread : spreads) spread.Encode(out);
  bytes_ += row.bytes.size();
}

void OpenSpreads::Merge(Nanos tick, std::span<const QuantileSketch> late,
                        std::vector<Spread>& spreads) {
  const auto end = ticks_.begin() + static_cast<ptrdiff_t>(used_);
  const auto row = std::lower_bound(ticks_.begin(), end, tick,
                                    [](const Tick& t, Nanos wanted) { return t.tick < wanted; });
  if (row == end || row->tick != tick) return;
  ByteReader in(row->bytes);
  merged_.clear();
  ByteWriter out(merged_);
  for (size_t i = 0; i < spreads.size(); ++i) {
    if (in.left() == 0) {
      sketch_.Clear();  // the series came after this row
    } else if (!sketch_.Decode(in).ok()) {
      return;
    }
    if (i < late.size() && !late[i].empty()) {
      sketch_.Merge(late[i]);
      spreads[i] = SpreadOf(sketch_);
    }
    sketch_.Encode(out);
  }
  bytes_ += merged_.size();
  bytes_ -= row->bytes.size();
  row->bytes.swap(merged_);
}

void OpenSpreads::Drop(Nanos until) {
  const auto end = ticks_.begin() + static_cast<ptrdiff_t>(used_);
  const auto kept = std::upper_bound(ticks_.begin(), end, until,
                                     [](Nanos t, const Tick& row) { return t < row.tick; });
  for (auto row = ticks_.begin(); row != kept; ++row) bytes_ -= row->bytes.size();
  used_ = static_cast<size_t>(end - kept);
  std::rotate(ticks_.begin(), kept, end);
}

}  // namespace sonde::head
