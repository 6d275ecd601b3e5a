#include "daemon/head/registry/head_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "core/log.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/live/live_steps.h"

namespace sonde::head {

namespace {

constexpr std::string_view kReducedGroup = "reduced";

// A head that died early has left none.
Status ReadState(const Result<std::string>& stored, HeadState& state) {
  if (stored.ok()) return Decode(*stored, state);
  return stored.status().code() == Code::kNotFound ? Status() : stored.status();
}

}  // namespace

HeadStore::HeadStore(Loop& loop, ArchiveWriter& archive, uint64_t limit, StepRecord& record,
                     RowPath& rows, Nodes& nodes, Owner& owner)
    : loop_(loop),
      archive_(archive),
      limit_(limit),
      record_(record),
      rows_(rows),
      nodes_(nodes),
      owner_(owner) {}

HeadStore::~HeadStore() {
  loop_.Cancel(store_timer_);
  loop_.Cancel(describe_timer_);
}

// By the columns of the step's series, of which a node may have few.
void HeadStore::InheritLastValues(const HeadState& state) {
  if (state.schema == nullptr) return;
  const std::vector<uint32_t> columns_of = rows_.ColumnsOf(*state.schema);
  ForEachLastValues(state, [&](const tree::FrameInfo& info, std::span<const uint32_t> there,
                               std::span<const Reduced> values) {
    std::vector<uint32_t> columns;
    columns.reserve(there.size());
    for (const uint32_t column : there) columns.push_back(columns_of[column]);
    rows_.InheritLastValues(info, columns, values);
  });
}

std::string HeadStore::Inherit(const std::string& path) {
  Result<Heritage> heritage = ReadHeritage(path, record_.Description());
  if (!heritage.ok()) {
    record_.AddNote(fmt::format("an acting head knows only the nodes that have come to it: {}",
                                heritage.status().message()));
    record_.Update([](JobDescription& j) { j.presence_from = 1; });
    return "";
  }
  HeadState state;
  const Status read = ReadState(heritage->state, state);
  if (!read.ok()) state = {};
  record_.Continue(state.phases);
  JobDescription& job = heritage->job;
  rows_.Inherit(job, state.row);
  InheritLastValues(state);
  job.notes.clear();
  job.figures.clear();
  job.launch_host = HostName();
  job.coverage = {};
  job.presence.clear();
  job.presence_from = state.row + 1;
  nodes_.Inherit(job, state);
  record_.Update([&](JobDescription& j) { j = job; });
  if (!read.ok()) {
    record_.AddNote(
        fmt::format("an acting head does not know what nodes had counted that ended "
                    "before, nor which alarms were changed: {}",
                    read.message()));
  }
  return std::move(state.alarms);
}

Nanos HeadStore::AfterAllNodes(Nanos time) const {
  return std::min(kStoreAfter, time + static_cast<Nanos>(nodes_.size()) * kStoreEach);
}

void HeadStore::StoreWithin(Nanos time) {
  const Nanos at = Clock::System().Monotonic() + time;
  if (store_timer_ != 0 && store_at_ <= at) return;
  loop_.Cancel(store_timer_);
  store_at_ = at;
  store_timer_ = loop_.At(at, [this] {
    store_timer_ = 0;
    // Whom this head does not reach may go on elsewhere, from what it stored last. There is nothing
    // to add to that but that all are lost, which the other head would believe.
    const bool alone = nodes_.size() > 0 && !nodes_.some_stay();
    alone ? StoreWithin(kSecond) : StoreState();
  });
}

void HeadStore::OnRow() { StoreWithin(rows_.unsafe_rows() >= kStoreAfterRows ? 0 : kStoreAfter); }

// Phases and remarks are no blocks that could be stored by and by: all that is known is stored
// again after some seconds, and the nodes keep what they told until then.
void HeadStore::OnMoments() {
  moments_changed_ = true;
  StoreWithin(AfterAllNodes(kStoreMomentsAfter));
}

void HeadStore::OnNode() {
  if (describe_timer_ != 0 || stopped_) return;
  describe_timer_ = loop_.After(kDescribeAfter, [this] {
    describe_timer_ = 0;
    Describe();
  });
}

void HeadStore::Describe() {
  nodes_changed_ = false;
  described_ = record_.PresenceNow();
  figures_ = record_.Figures();
  archive_.PutDescription(record_.Description());
}

// If the head is killed, what was described last is told of all rows that are stored.
void HeadStore::StoreRows(const SealedBlock& block) {
  if (described_ != record_.PresenceNow()) Describe();
  const Status refused =
      archive_.PutBlock({.key = {kReducedNode, std::string(kReducedGroup), block.sequence},
                         .first = block.sequence,
                         .schema_id = block.schema->id(),
                         .schema = block.schema,
                         .bytes = block.bytes,
                         .limit = limit_,
                         .keep = true},
                        [](const Status&) {});
  if (!refused.ok()) log::Warning("rows are not stored: {}", refused.message());
}

void HeadStore::StoreState() {
  if (stopped_) return;
  if (storing_) return StoreWithin(kSecond);
  if (std::exchange(moments_changed_, false)) {
    // Nodes that have just come may be named in them.
    if (describe_timer_ != 0 || figures_ != record_.Figures()) Describe();
    archive_.PutMoments(record_.Moments());
  }
  loop_.Cancel(std::exchange(store_timer_, 0));
  rows_.BeginSafe();
  if (!nodes_.has_successors()) return rows_.EndSafe();  // nobody goes on
  storing_ = true;
  for (const SealedBlock& rows : record_.OpenRows()) StoreRows(rows);
  if (nodes_changed_) Describe();
  HeadState state;
  state.row = rows_.newest();
  state.byes = nodes_.byes();
  state.ends = nodes_.ends();
  state.phases = record_.OpenPhases();
  state.alarms = owner_.AlarmChanges();
  archive_.PutState(EncodeWithLastValues(state), [this](const Status& stored) {
    storing_ = false;
    log::Debug("the head's state is stored: {}", stored.ok() ? "ok" : stored.message());
    // Without an archive nobody will go on from it.
    if (safe_) rows_.EndSafe();
    owner_.OnStateStored();
  });
}

// The gauges of nodes that are gone are in no total: they are the first to make room, and then the
// values of the head's own children, which tell them again unless they die with the head.
std::string HeadStore::EncodeWithLastValues(HeadState& state) {
  std::string bytes;
  size_t left_out = 0;
  for (const bool gauges : {true, false}) {
    state.ended.clear();
    state.schema = rows_.schema();
    std::vector<std::string> children;
    rows_.LastValues(
        [&](const tree::Frame& frame) {
          children.push_back(EncodeLastValues(frame, *state.schema, gauges));
        },
        [&](const tree::Frame& frame) {
          state.ended.push_back(EncodeLastValues(frame, *state.schema, gauges || !frame.lost));
        });
    std::move(children.begin(), children.end(), std::back_inserter(state.ended));
    bytes = Encode(state, &left_out);
    if (left_out == 0) return bytes;
  }
  log::Warning(
      "the state for another head is too long: if {} of {} nodes die with this head, what they "
      "counted last is lost",
      left_out, state.ended.size());
  return bytes;
}

void HeadStore::StoreLast(bool safe) {
  safe_ = safe;
  nodes_changed_ = true;  // and notes
  StoreState();
  stopped_ = true;
  loop_.Cancel(std::exchange(describe_timer_, 0));
}

}  // namespace sonde::head
