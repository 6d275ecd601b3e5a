#include "daemon/node/record/recorder.h"

#include <algorithm>

#include "daemon/node/ask/answer.h"
#include "series/store/past.h"

namespace sonde::node {
namespace {

// Blocks double from the first on up to the most rows. The more nodes the longer the first, since
// the head takes all of them; by what one is longer than another's all later ones end later.
size_t FirstRows(uint32_t node, uint32_t nodes) {
  const size_t least = std::clamp<size_t>(nodes / 16, 16, 64);
  const double place = static_cast<double>(node) / std::max(nodes, 1u);
  return least + static_cast<size_t>(std::clamp(place, 0.0, 1.0) * static_cast<double>(least));
}

}  // namespace

Recorder::Recorder(const collect::Sampler::Options& options, size_t memory_limit, uint32_t node,
                   uint32_t nodes)
    : sampler_(options), past_(memory_limit / 16, options.period) {
  for (auto& store : stores_) {
    GroupStore::Options limits;
    limits.first_rows = FirstRows(node, nodes);
    limits.memory_limit = memory_limit / collect::kGroups;
    store = std::make_unique<GroupStore>(limits);
  }
}

void Recorder::SetOnSeal(const OnSeal& f) {
  const auto seal_into = [this, f](std::string_view group) {
    return [this, f, group](const SealedBlock& block) {
      sealed_bytes_ += block.bytes->size();
      f(GroupFrom(HasTasks(*block.schema) ? first_rank_ : 0, group), block);
    };
  };
  for (size_t g = 0; g < collect::kGroups; ++g)
    stores_[g]->OnSeal(seal_into(collect::kGroupNames[g]));
  past_.OnSeal(seal_into(kPastGroup));
}

bool Recorder::AddPast(std::span<const collect::PastValue> values,
                       const std::vector<Series>& series) {
  return past_.Add(values, series, time_,
                   [this](const Schema::Ptr& s) { return RelativeRanks(s); });
}

bool Recorder::Sample(Nanos time, collect::Sampler::Extent extent) {
  sampler_.Sample(time, extent);
  time_ = time;
  for (size_t g = 0; g < collect::kGroups; ++g) {
    const auto group = static_cast<collect::Group>(g);
    const Schema::Ptr& schema = sampler_.schema(group);
    if (schema != schemas_[g]) {
      schemas_[g] = schema;
      stores_[g]->SetSchema(RelativeRanks(schema));
    }
    if (schema != nullptr && schema->size() != 0) stores_[g]->Append(time, sampler_.row(group));
  }
  const bool changed = DeriveFrom(time);
  Reduce();
  return changed;
}

// Once the first rank is known it stays, whatever rank comes.
Schema::Ptr Recorder::RelativeRanks(const Schema::Ptr& schema) {
  if (schema == nullptr) return nullptr;
  if (first_rank_ == kNoRank) first_rank_ = FirstRank(*schema);
  return first_rank_ == kNoRank ? schema : RanksFrom(first_rank_, schema);
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

// The newest sample may go up after this, and it names the node.
void Recorder::SetNode(uint32_t index) {
  reducer_.SetNode(index);
  Reduce();
}

uint64_t Recorder::dropped_rows() const {
  uint64_t rows = past_.dropped() + past_.store().dropped_rows();
  for (const auto& store : stores_) rows += store->dropped_rows();
  return rows;
}

void Recorder::Seal() {
  for (auto& store : stores_) store->Seal();
  past_.Seal();
}

Result<QueryPart> Recorder::Answer(const QuerySpec& spec, const QueryGrid& grid,
                                   const std::string& host) const {
  std::vector<const GroupStore*> stores;
  for (const auto& store : stores_) stores.push_back(store.get());
  return AnswerFrom(stores, spec, grid, {host, first_rank_ == kNoRank ? 0 : first_rank_},
                    &past_.store());
}

}  // namespace sonde::node
