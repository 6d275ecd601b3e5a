// What the head knows of its step while it runs: description, reduced series, footprint, moments,
// cost.
//
// The loop writes, the web server's threads read: one mutex, held for short copies.
//
// Thread safety: every method may be called from any thread, unless it says otherwise.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "daemon/collect/job/moments.h"
#include "daemon/head/open_spreads.h"
#include "daemon/head/step_notes.h"
#include "daemon/tree/frame.h"
#include "profiles/footprint.h"
#include "profiles/moments_builder.h"
#include "profiles/profile.h"
#include "series/reduced.h"
#include "series/store.h"

namespace sonde::head {

class StepRecord {
 public:
  explicit StepRecord(JobDescription job);

  // The loop's thread only. Called with each block of reduced series as it is sealed, within
  // Append and Seal.
  void OnSeal(std::function<void(const SealedBlock&)> f);
  // One row of the step's reduced series. Series only ever grow at the end. Those that are for
  // alarms alone are passed over.
  void Append(Nanos tick, const tree::FrameValues& row, const std::vector<Series>& series);
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
  // See StepNotes.
  void AddNote(std::string text);
  void AddNoteOfNode(uint32_t node, std::string alone, std::string rest);
  void UpdateCost(const std::function<void(OwnCost&)>& change);

  JobDescription Description() const;
  std::string Host(uint32_t node) const;
  Profile Snapshot() const;
  StepMoments Moments() const;
  std::vector<OpenPhase> OpenPhases() const;
  void Continue(const std::vector<OpenPhase>& open);
  // Reduced series of [start, end] with the tag stat.
  std::vector<SeriesData> Read(const std::function<bool(const Series&)>& wanted, Nanos start,
                               Nanos end) const;
  // The time of the newest row; 0: there is none.
  Nanos NewestRow() const;
  // The reduced series, without the tag stat.
  std::vector<Series> AllSeries() const;

 private:
  void SetSeries(const std::vector<Series>& series);  // with the mutex held
  JobDescription Described() const;                   // with the mutex held

  mutable std::mutex mutex_;
  JobDescription job_;  // without those of notes_ and without figures
  StepNotes notes_;
  OwnCost cost_;
  std::vector<Series> series_;
  std::vector<size_t> places_;  // of series_ in the rows that come
  size_t row_size_ = 0;         // when they were last looked at
  GroupStore store_;
  FootprintBuilder footprint_;
  MomentsBuilder moments_;
  std::vector<Reduced> row_;
  std::vector<double> columns_;
  std::vector<Spread> spreads_;  // of the row that is appended
  OpenSpreads open_;             // the sketches of rows that can be amended
};

}  // namespace sonde::head
