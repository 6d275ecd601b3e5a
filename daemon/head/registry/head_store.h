// What a head itself stores of its step while that runs, and how another head begins from it.
//
// The step's rows are stored as their blocks are sealed, and its description as nodes come. Some
// time after rows have come, last values, moments or changes of alarms, all of it is stored up to
// now, with a HeadState: from then on the nodes need not keep it for another head.
//
// Thread safety: the loop's thread only.
#pragma once

#include <string>
#include <vector>

#include "core/time.h"
#include "daemon/head/record/archive_writer.h"
#include "daemon/head/record/row_path.h"
#include "daemon/head/record/step_record.h"
#include "daemon/head/registry/head_state.h"
#include "daemon/head/registry/nodes.h"
#include "daemon/loop.h"

namespace sonde::head {

class HeadStore {
 public:
  // After so long, or so many rows, the step's rows so far are stored. Nodes keep half of
  // FrameWindow::kMaxFrames rows. Last values of an ended node are the one thing that nobody else
  // has: those are stored soon. As the description of all nodes goes with them, that takes
  // kStoreEach longer for each node, up to kStoreAfter: what is written a second does not grow with
  // the nodes.
  static constexpr Nanos kStoreAfter = 10 * kSecond;
  static constexpr Nanos kStoreEndedAfter = kSecond;
  static constexpr Nanos kStoreEach = 100 * kMicrosecond;
  static constexpr uint32_t kStoreAfterRows = 96;
  // How often what the application told is stored while it goes on telling.
  static constexpr Nanos kStoreMomentsAfter = 5 * kSecond;
  static constexpr Nanos kStoreAlarmsAfter = kSecond;
  // Nodes that come within it are described together.
  static constexpr Nanos kDescribeAfter = kSecond;

  class Owner {
   public:
    // The changes of the alarms that a HeadState holds.
    virtual std::string AlarmChanges() const = 0;
    // A HeadState is stored, or could not be.
    virtual void OnStateStored() = 0;

   protected:
    ~Owner() = default;
  };

  // `limit`: bytes of the profile.
  HeadStore(Loop& loop, ArchiveWriter& archive, uint64_t limit, StepRecord& record, RowPath& rows,
            Nodes& nodes, Owner& owner);
  ~HeadStore();
  HeadStore(const HeadStore&) = delete;
  HeadStore& operator=(const HeadStore&) = delete;

  // Takes over what the head before has stored in the archive at `path`: its nodes, which are on
  // their way here, and what those that have ended had counted. Gives the alarms' changes.
  std::string Inherit(const std::string& path);

  // Rows, last values, moments or changes of alarms have come.
  void OnRow();
  void OnLastValues() { StoreWithin(AfterAllNodes(kStoreEndedAfter)); }
  void OnMoments();
  void OnAlarmsChanged() { StoreWithin(kStoreAlarmsAfter); }
  // A node has come, or is gone.
  void OnNode();
  void OnNodeGone() { nodes_changed_ = true; }
  // A sealed block of the step's rows, or one that is still open; after the description, if that
  // does not tell yet which nodes are in the rows.
  void StoreRows(const SealedBlock& block);

  // A HeadState is being stored.
  bool storing() const { return storing_; }
  // The step's end begins: nobody goes on from here.
  void Stop() { stopped_ = true; }
  // Stores all for the next head, and nothing after it. `safe` is false if another head goes on
  // already, which does not read this: then nodes keep for it what it would not have.
  void StoreLast(bool safe = true);

 private:
  void Describe();
  Nanos AfterAllNodes(Nanos time) const;
  void StoreWithin(Nanos time);
  void StoreState();
  std::string EncodeWithLastValues(HeadState& state);
  void InheritLastValues(const HeadState& state);

  Loop& loop_;
  ArchiveWriter& archive_;
  const uint64_t limit_;
  StepRecord& record_;
  RowPath& rows_;
  Nodes& nodes_;
  Owner& owner_;

  bool moments_changed_ = false;        // since they were stored
  bool nodes_changed_ = false;          // since the description was stored
  StepRecord::PresenceRuns described_;  // as it was then
  std::vector<Figure> figures_;         // then
  bool storing_ = false;
  bool stopped_ = false;
  bool safe_ = true;
  Nanos store_at_ = 0;  // monotonic
  Loop::TimerId store_timer_ = 0;
  Loop::TimerId describe_timer_ = 0;
};

}  // namespace sonde::head
