#include "daemon/head/record/row_path.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace sonde::head {

namespace {

// Of so many ticks the head knows which nodes are in them.
constexpr size_t kRemember = 1024;

// Of a node that came before the head knew of the step, or whose clock differs.
constexpr Nanos kBeforeStart = 60 * kSecond;

// A node that comes to an acting head sends all it has within a fraction of that.
constexpr Nanos kGather = kSecond;

// Ticks wait that long for a node that changes its link.
Nanos HandOver(Nanos period) { return std::max(2 * period, 200 * kMillisecond); }

}  // namespace

RowPath::RowPath(Loop& loop, StepClock& clock, StepRecord& record, tree::QueryFanout& queries,
                 Owner& owner)
    : loop_(loop),
      clock_(clock),
      record_(record),
      period_(record.Job()->period),
      owner_(owner),
      first_(record.Job()->start - std::max(kBeforeStart, period_)),
      coverage_(record.Job()->start, period_),
      presence_(period_),
      merger_(kRemember, [this](const tree::TickMerger::Row& row, bool late) { OnRow(row, late); }),
      children_(merger_, queries, {period_, HandOver(period_)}, tree::Keep::kUntilSafe, *this,
                clock) {}

RowPath::~RowPath() {
  loop_.Cancel(expiry_timer_);
  loop_.Cancel(gather_timer_);
}

// Long enough for a late frame to come through the tree, short enough for a live view.
Nanos RowPath::MergeWindow() const { return std::max(2 * period_, kSecond); }

// Rows wait for a contributor that never comes.
void RowPath::Gather() {
  gather_timer_ = loop_.After(kGather, [this, nobody = merger_.AddContributor(0)] {
    gather_timer_ = 0;
    merger_.Remove(nobody);
  });
}

void RowPath::UpdateCoverage() {
  record_.SetCoverage(coverage_.Now(record_.Job()->expected_nodes));
}

void RowPath::OnRow(const tree::TickMerger::Row& row, bool late) {
  children_.HandOnLost(row.tick, row.nodes);
  if (!late) children_.StandInForMissing(row.tick, row.nodes);
  children_.Forwarded(row.sources, 0);
  if (row.tick <= inherited_) return;  // the head before had it
  if (row.tick < first_) {             // a node with a wrong clock, or one that lies
    missing_samples_ += row.nodes.size();
    return;
  }
  ++unsafe_rows_;
  if (!late) {
    Append(row);
  } else if (!Amend(row)) {
    missing_samples_ += row.nodes.size();  // of a row that is sealed
    return;
  }
  coverage_.OnRow(row.tick, row.nodes);
  UpdateCoverage();
  owner_.OnRecorded(row.tick, late);
}

void RowPath::Append(const tree::TickMerger::Row& row) {
  if (merger_.all().left_out() > 0 && !std::exchange(said_left_out_, true)) {
    record_.AddNote(merger_.all().LeftOutNote());
  }
  whole_.tick = row.tick;
  whole_.nodes = row.nodes;
  whole_.values = row.values;
  ended_.AddTo(whole_, merger_.series(), merger_.Present());
  const bool others = presence_.OnRow(row.tick, row.nodes, HasCaughtUp());
  PublishPresence();
  record_.Append(row.tick, {whole_.values, row.spreads}, merger_.series(), others);
  owner_.OnNewRow(whole_, merger_.series());
  ScheduleExpiry();
}

// Whether values that stand in for absent nodes have replaced older ones than rows have. Nobody
// knows what rows another head stores.
bool RowPath::HasCaughtUp() const {
  const auto& renewed = ended_.renewed();
  return std::any_of(renewed.begin(), renewed.end(),
                     [this](const tree::EndedNodes::Renewed& before) {
                       return !alone_ || before.when <= presence_.LastTickOf(before.node);
                     });
}

// Values that stood in for a node in its row have been counted there: the row goes on without the
// node's own counters.
bool RowPath::Amend(const tree::TickMerger::Row& late) {
  late_ = late.values;
  const bool stood_in = ended_.StoodIn(late.tick, late.nodes, late_);
  if (!record_.Amend(late.tick, {late_, late.spreads})) return false;
  if (!stood_in) presence_.OnLatePart(late.tick, late.nodes);
  return true;
}

// Before a new row, so that nobody sees the row and takes it for one of the run before. What late
// parts change may be told later: until then their nodes count as absent. With the next row is soon
// enough, and costs a step little in which all parts are late.
void RowPath::PublishPresence() {
  if (presence_.changed()) record_.SetPresence(presence_.Runs());
}

void RowPath::OnRefused(tree::TickMerger::Fate fate, const tree::Frame& frame,
                        tree::TickMerger::Source source) {
  children_.Forwarded({&source, 1}, 0);
  if (fate == tree::TickMerger::Fate::kTooEarly) {
    early_samples_ += frame.nodes.size();
  } else if (fate == tree::TickMerger::Fate::kUnknown) {
    unknown_samples_ += frame.nodes.size();
  } else if (fate != tree::TickMerger::Fate::kRepeated) {
    missing_samples_ += frame.nodes.size();
  }
}

void RowPath::OnEnded(const tree::FrameInfo& info, const Schema::Ptr& schema,
                      std::span<const Reduced> values, tree::TickMerger::Source source) {
  const auto fate = ended_.Add(info, merger_.ColumnsOf(*schema), values);
  if (fate == tree::EndedNodes::Fate::kOverlaps) return children_.Refuse(source);
  children_.Forwarded({&source, 1}, 0);
  const Nanos newest = std::max(whole_.tick, inherited_);
  if (fate == tree::EndedNodes::Fate::kAdded && info.tick <= newest) OnLateEnd(info, newest);
  CheckLost(info.nodes);
  owner_.OnLastValues(info.nodes.first(), info.lost);
}

// Rows were made without them, or with what these nodes had counted before. What a node counted
// that is only late may come often, and matters once it is lost.
void RowPath::OnLateEnd(const tree::FrameInfo& info, Nanos newest) {
  info.nodes.ForEach([&](uint32_t node) { late_ends_[node] = newest + 1; });
  if (!info.lost || lost_.Intersects(info.nodes)) TellLateEnds(info.nodes);
}

void RowPath::TellLateEnds(const tree::NodeSet& nodes) {
  std::vector<std::pair<uint32_t, Nanos>> told;
  nodes.ForEach([&](uint32_t node) {
    const auto late = late_ends_.extract(node);
    if (!late.empty()) told.emplace_back(node, late.mapped());
  });
  if (told.empty()) return;
  record_.Update([&](JobDescription& job) {
    for (const auto& [node, since] : told) {
      if (node < job.nodes.size()) job.nodes[node].end_in_rows = since;
    }
  });
}

void RowPath::OnLost(uint32_t node, std::string why) {
  lost_.Add(tree::NodeSet(node));
  TellLateEnds(tree::NodeSet(node));
  record_.AddLost(node, std::move(why), ended_.Has(node));
}

// Last values may come after their node was lost: from the parent that has them, or, of the head's
// own child, once a row goes without it.
void RowPath::CheckLost(const tree::NodeSet& nodes) {
  if (!lost_.Intersects(nodes)) return;
  nodes.ForEach([&](uint32_t node) {
    if (lost_.Has(node)) record_.SetCounted(node, ended_.Has(node));
  });
}

void RowPath::ScheduleExpiry() {
  if (expiry_timer_ != 0 || stopped_) return;
  expiry_timer_ = loop_.After(MergeWindow() / 2, [this] {
    expiry_timer_ = 0;
    const Nanos now = clock_.Look();
    children_.HandOnLost(now);
    if (gather_timer_ == 0) merger_.EmitUpTo(now - MergeWindow());
    PublishPresence();
    ScheduleExpiry();
  });
}

// --- From one head to the next ---

void RowPath::BeginSafe() {
  unsafe_rows_ = 0;
  PublishPresence();
  children_.BeginSafe();
}

void RowPath::LastValues(const OnLastValues& children, const OnLastValues& ended) {
  const size_t series = merger_.series().size();
  tree::NodeSet own_children;
  tree::Frame frame;
  frame.stream = tree::Stream::kEnded;
  frame.lost = true;
  children_.ForEachOwn([&](uint32_t index, Nanos tick, const Schema& own, auto values) {
    own_children.Add(tree::NodeSet(index));
    ++frame.number;
    frame.tick = tick + 1;
    frame.nodes.Set(index);
    frame.values.assign(series, Reduced());
    const std::vector<uint32_t> columns = merger_.ColumnsOf(own);
    for (size_t i = 0; i < columns.size() && i < values.size(); ++i) {
      if (columns[i] < series) frame.values[columns[i]] = values[i];
    }
    children(frame);
  });
  // Of a child that has come back its own values are newer than the lost ones from before.
  ended_.Save(series, own_children, ended);
}

void RowPath::Inherit(const JobDescription& before, Nanos newest) {
  inherited_ = newest;
  presence_.Inherit(before, newest);
  PublishPresence();
}

void RowPath::InheritLastValues(const tree::FrameInfo& info, std::span<const uint32_t> columns,
                                std::span<const Reduced> values) {
  if (!ended_.Has(info.nodes.first())) ended_.Add(info, columns, values);
}

// --- The end ---

void RowPath::Finish(Nanos now) {
  children_.HandOnLost(INT64_MAX);
  children_.StandInForEach(lost_);
  // Also ticks of nodes whose clocks are ahead of ours: the last row comes after them all, and not
  // before the time at which its additional counts were counted.
  merger_.EmitUpTo(INT64_MAX);
  PublishPresence();
  record_.Append(now > whole_.tick ? now : whole_.tick + period_,
                 ended_.Final(merger_.series().size()), merger_.series());
  record_.Seal();
  record_.SetCoverage(coverage_.AtEnd(record_.Job()->expected_nodes));
  CheckLost(lost_);  // one that was back and is gone again may have no last values any more
}

void RowPath::NoteMissing(size_t nodes) {
  if (const size_t series = merger_.all().left_out(); series > 0) {
    record_.AddNote(fmt::format("{}{} series are missing in the totals over all nodes",
                                series == kMaxSeries ? "at least " : "", series));
  }
  if (missing_samples_ > 0) {
    record_.AddNote(fmt::format("{} samples came too late to be merged", missing_samples_));
  }
  if (early_samples_ > 0) {
    record_.AddNote(fmt::format(
        "{} samples were left out: their times lie far ahead of the step's time", early_samples_));
  }
  if (unknown_samples_ > 0) {
    record_.AddNote(fmt::format(
        "{} samples of nodes that have never registered, or merged with such, were left out",
        unknown_samples_));
  }
  for (const auto& [count, what] : {std::pair(children_.unknown_blocks(), "blocks"),
                                    {children_.unknown_moments(), "remarks, phases or figures"}}) {
    if (count == 0) continue;
    record_.AddNote(
        fmt::format("{} {} of nodes that have never registered were left out", count, what));
  }
  if (const uint64_t unread = children_.unread_joined(); unread > 0) {
    record_.AddNote(fmt::format(
        "per-node series are incomplete: {} messages of joined blocks need a newer Sonde", unread));
  }
  size_t unknown = 0;
  for (uint32_t i = 0; i < nodes; ++i) unknown += ended_.Has(i) ? 0 : 1;
  if (unknown > 0) {
    record_.AddNote(
        fmt::format("what {} of {} nodes counted is missing from the totals", unknown, nodes));
  }
}

}  // namespace sonde::head
