// What the head knows of its step while it runs: description, reduced series, footprint, moments,
// cost.
//
// The loop writes, the web server's threads read. Of rows they share a mutex, which is held for
// short copies; everything else is read as it was (daemon/head/record/shared_value.h), so that the
// loop does not wait for what a reader makes of it, which grows with the step.
//
// Thread safety: every method may be called from any thread, unless it says otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "daemon/collect/app/moments.h"
#include "daemon/head/record/open_spreads.h"
#include "daemon/head/record/shared_value.h"
#include "daemon/head/record/step_notes.h"
#include "daemon/tree/frame.h"
#include "profiles/model/footprint.h"
#include "profiles/model/moments_builder.h"
#include "profiles/model/profile.h"
#include "series/store/reduced.h"
#include "series/store/store.h"

namespace sonde::head {

class StepRecord {
 public:
  // kComeAgain: an acting head's. Nodes send it again, one after the other, what the head before
  // had not stored; so its first rows stay open as long as later ones do.
  enum class Rows : unsigned char { kCome, kComeAgain };
  explicit StepRecord(JobDescription job, Rows rows = Rows::kCome);

  // The loop's thread only. Called with each block of reduced series as it is sealed, within
  // Append and Seal.
  void OnSeal(std::function<void(const SealedBlock&)> f);
  // One row of the step's reduced series. Series only ever grow at the end. Those that are for
  // alarms alone are passed over. `others`: it may be of other nodes than the row before.
  void Append(Nanos tick, const tree::FrameValues& row, const std::vector<Series>& series,
              bool others = false);
  // Merges a part that came late into its row. False if that is sealed already, or never was.
  bool Amend(Nanos tick, const tree::FrameValues& late);
  void Seal();
  // The rows that are not in a sealed block yet.
  std::vector<SealedBlock> OpenRows() const;
  // What the application told on some nodes at some tick; each once.
  void AddMoments(const collect::Moments& moments);

  // See MomentsBuilder.
  void AddAlarm(RaisedAlarm alarm);
  void EndAlarm(std::string_view rule, const Tags& tags, Nanos time);
  void EndAlarms(std::string_view rule, Nanos time);

  void Update(const std::function<void(JobDescription&)>& change);
  // See StepNotes. They stand in the head's log as well.
  void AddNote(std::string text);
  void AddNoteOfNode(uint32_t node, std::string alone, std::string rest);
  void AddLost(uint32_t node, std::string why, bool counted);
  void SetCounted(uint32_t node, bool counted);
  void UpdateCost(const std::function<void(OwnCost&)>& change);
  // With every row: by itself, for the description names all nodes.
  void SetCoverage(const Coverage& coverage);
  // Which nodes are in the rows (head/record/presence.h): by itself too, for it changes with rows.
  void SetPresence(std::vector<PresenceRun> runs);
  using PresenceRuns = std::shared_ptr<const std::vector<PresenceRun>>;
  PresenceRuns PresenceNow() const { return *presence_.Get(); }

  // Everything but the rows, as it is now; holds up nobody, however long it is held.
  class View {
   public:
    explicit View(const StepRecord& record);
    JobDescription Description() const;
    // The same without notes, figures, coverage and presence, and without copying what it names.
    const JobDescription& Job() const { return *job_; }
    // The description's notes.
    std::vector<std::string> Notes() const;
    Profile Snapshot() const;
    StepMoments Moments() const { return moments_->Moments(); }

   private:
    const SharedValue<JobDescription>::Look job_;
    const SharedValue<StepNotes>::Look notes_;
    const SharedValue<OwnCost>::Look cost_;
    const SharedValue<Coverage>::Look coverage_;
    const SharedValue<PresenceRuns>::Look presence_;
    const SharedValue<FootprintBuilder>::Look footprint_;
    const SharedValue<MomentsBuilder>::Look moments_;
  };
  JobDescription Description() const { return View(*this).Description(); }
  // The same without notes, figures, coverage and presence, and without copying what it names.
  SharedValue<JobDescription>::Look Job() const { return job_.Get(); }
  // Of what Job() gives now: another one after each Update.
  uint64_t JobVersion() const { return job_.version(); }
  // What it was when rows last changed: who has read rows before knows that all nodes that are in
  // them are in descriptions from this one on.
  uint64_t VersionOfRows() const { return version_of_rows_; }
  Profile Snapshot() const { return View(*this).Snapshot(); }
  StepMoments Moments() const;
  std::vector<Figure> Figures() const;
  std::string Host(uint32_t node) const;
  std::vector<OpenPhase> OpenPhases() const;
  void Continue(const std::vector<OpenPhase>& open);
  // Reduced series of [start, end] with the tag stat. `presence`: gets what was known of these very
  // rows; what is read before or after may not fit them.
  std::vector<SeriesData> Read(const std::function<bool(const Series&)>& wanted, Nanos start,
                               Nanos end, PresenceRuns* presence = nullptr) const;
  // The time of the newest row; 0: there is none.
  Nanos NewestRow() const;
  // The reduced series, without the tag stat.
  std::shared_ptr<const std::vector<Series>> AllSeries() const;
  // Whether the values of that metric only rise.
  bool Counts(std::string_view metric) const;
  // Whether it has values that rows do not have (series/store/past.h).
  bool HasPast(std::string_view metric) const;

 private:
  void SetSeries(const std::vector<Series>& series);  // with the mutex held

  SharedValue<JobDescription> job_;  // without what stands in the others
  SharedValue<StepNotes> notes_;
  SharedValue<OwnCost> cost_;
  SharedValue<Coverage> coverage_;
  SharedValue<PresenceRuns> presence_;
  SharedValue<FootprintBuilder> footprint_;
  SharedValue<MomentsBuilder> moments_;
  std::atomic<uint64_t> version_of_rows_ = 0;

  mutable std::mutex mutex_;  // store_ and series_, of which the loop alone sets the pointer
  GroupStore store_;
  std::shared_ptr<const std::vector<Series>> series_ =
      std::make_shared<const std::vector<Series>>();

  // The loop's.
  std::vector<size_t> places_;  // of series_ in the rows that come
  size_t row_size_ = 0;         // when they were last looked at
  std::vector<Reduced> row_;
  std::vector<double> columns_;
  std::vector<Spread> spreads_;  // of the row that is appended
  OpenSpreads open_;             // the sketches of rows that can be amended
};

}  // namespace sonde::head
