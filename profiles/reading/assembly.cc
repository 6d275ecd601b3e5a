#include "profiles/reading/assembly.h"

#include <algorithm>
#include <string_view>

namespace sonde {
namespace {

// A gauge that has one value of every node at every tick.
constexpr std::string_view kOneOfEachNode = "sonde_memory_bytes";

}  // namespace

void Assembly::AddRow(const std::string& group, const Schema::Ptr& schema, const Block& block,
                      size_t row) {
  if (schema != schema_) {
    schema_ = schema;
    base_ = BaseSeries(*schema);
    builder_ = &groups_.try_emplace(group, job_.start).first->second;
    if (!base_.empty()) builder_->SetSeries(base_);
  }
  if (base_.empty()) return;
  columns_.resize(block.columns());
  for (size_t c = 0; c < columns_.size(); ++c) columns_[c] = block.Column(c)[row];
  FromColumns(base_, columns_, row_, spreads_);
  double nodes = 0;
  double one_each = 0;
  for (size_t i = 0; i < base_.size(); ++i) {
    nodes = std::max(nodes, row_[i].count);
    if (base_[i].metric.name == kOneOfEachNode) one_each = row_[i].count;
  }
  builder_->AddRow(block.times[row], row_, spreads_,
                   nodes_.Changed(job_.presence, block.times[row]));
  // Other gauges may have one value per task, or values of nodes that have ended, but there are no
  // more nodes than the step has.
  nodes = std::min(nodes, static_cast<double>(job_.expected_nodes));
  if (one_each > 0) nodes = one_each;
  double& seen = (group == "os" ? nodes_at_ : others_at_)[block.times[row]];
  seen = std::max(seen, nodes);
}

std::vector<FootprintEntry> Assembly::Footprint() const {
  std::vector<FootprintEntry> all;
  for (const auto& [group, builder] : groups_) {
    for (FootprintEntry& entry : builder.Entries()) all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace sonde
