#include "daemon/node/recorder.h"

#include <algorithm>

#include "daemon/node/answer.h"

namespace sonde::node {

Recorder::Recorder(const collect::Sampler::Options& options, size_t memory_limit, double phase)
    : sampler_(options) {
  for (auto& store : stores_) {
    GroupStore::Options limits;
    // Blocks double up to the most, so what the first is longer all later ones end later.
    limits.first_rows +=
        static_cast<size_t>(std::clamp(phase, 0.0, 1.0) * static_cast<double>(limits.first_rows));
    limits.memory_limit = memory_limit / collect::kGroups;
    store = std::make_unique<GroupStore>(limits);
  }
}

void Recorder::SetOnSeal(const OnSeal& f) {
  for (size_t g = 0; g < collect::kGroups; ++g) {
    stores_[g]->OnSeal([this, f, g](const SealedBlock& block) {
      sealed_bytes_ += block.bytes->size();
      f(collect::kGroupNames[g], block);
    });
  }
}

bool Recorder::Sample(Nanos time, collect::Sampler::Extent extent) {
  sampler_.Sample(time, extent);
  time_ = time;
  for (size_t g = 0; g < collect::kGroups; ++g) {
    const auto group = static_cast<collect::Group>(g);
    const Schema::Ptr& schema = sampler_.schema(group);
    if (schema != schemas_[g]) {
      schemas_[g] = schema;
      stores_[g]->SetSchema(schema);
    }
    if (schema != nullptr && schema->size() != 0) stores_[g]->Append(time, sampler_.row(group));
  }
  const bool changed = DeriveFrom(time);
  Reduce();
  return changed;
}

// True if the reduced schema changed.
bool Recorder::DeriveFrom(Nanos time) {
  std::array<std::span<const double>, collect::kGroups> rows;
  for (size_t g = 0; g < collect::kGroups; ++g) {
    if (schemas_[g] != nullptr) rows[g] = sampler_.row(static_cast<collect::Group>(g));
  }
  derived_.SetSchemas(schemas_);
  derived_.Update(time, rows);
  std::array<Schema::Ptr, collect::kGroups + 1> all;
  std::copy(schemas_.begin(), schemas_.end(), all.begin());
  all.back() = derived_.schema();
  return reducer_.SetSchemas(all);
}

void Recorder::Reduce() {
  reducer_.Begin(time_);
  for (size_t g = 0; g < collect::kGroups; ++g) {
    if (schemas_[g] != nullptr) reducer_.Add(g, sampler_.row(static_cast<collect::Group>(g)));
  }
  if (derived_.schema() != nullptr) reducer_.Add(collect::kGroups, derived_.row());
}

// The newest sample may go up after this, and names the node.
void Recorder::SetNode(uint32_t index) {
  reducer_.SetNode(index);
  Reduce();
}

uint64_t Recorder::dropped_rows() const {
  uint64_t rows = 0;
  for (const auto& store : stores_) rows += store->dropped_rows();
  return rows;
}

void Recorder::Seal() {
  for (auto& store : stores_) store->Seal();
}

Result<QueryPart> Recorder::Answer(const QuerySpec& spec, const QueryGrid& grid,
                                   const std::string& host) const {
  std::vector<const GroupStore*> stores;
  for (const auto& store : stores_) stores.push_back(store.get());
  return AnswerFrom(stores, spec, grid, host);
}

}  // namespace sonde::node
