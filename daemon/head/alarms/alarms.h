// The alarms of a running step: its rules, what became of them, and whom to tell.
//
// Rules come from those that are built in, the file that sonde.conf names, sonde.conf itself, the
// user's file, and callers that add them while the step runs, by HTTP or from the application;
// later ones take the place of earlier ones with the same name. They are looked at in every new row
// of the step's reduced series, together with `sonde_node_missing`, 1 for each node whose sample is
// not in the row; where no rows come, a row without values takes their place. Late parts do not
// count.
//
// What is raised, or over, goes to the record (notes, alarms), to the application's remarks, and to
// the user's command and webhook.
//
// Thread safety: List, Add and Remove from any thread; everything else the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/config.h"
#include "daemon/head/alarms/alarm_actions.h"
#include "daemon/head/alarms/missing_nodes.h"
#include "daemon/head/record/step_record.h"
#include "daemon/launch_message.h"
#include "daemon/loop.h"
#include "daemon/tree/tick_merger.h"
#include "series/alarm/evaluator.h"

namespace sonde::head {

class Alarms {
 public:
  // The head. It is not called by the constructor, nor once this is gone.
  class Owner {
   public:
    // To all nodes: kDerive.
    virtual void Derive(const std::string& payload) = 0;
    // To the application's remarks.
    virtual void Remark(const collect::Moments& moments) = 0;
    // Changes() has more to tell.
    virtual void OnAlarmsChanged() = 0;

   protected:
    ~Owner() = default;
  };

  // `changes`: Changes() of the head before this one.
  // `clock`: the step's.
  Alarms(Loop& loop, const Clock& clock, StepRecord& record, const LaunchMessage& launch,
         const Config& config, std::string_view changes, Owner& owner);
  ~Alarms();
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

  // What a new node has to derive; "": nothing. From now on its absent samples count as missing.
  std::string OnNode(uint32_t index);
  void OnGone(uint32_t index) { nodes_.OnGone(index); }
  void OnRow(const tree::TickMerger::Row& row, const std::vector<Series>& series);
  // The step ends: nothing is raised any more.
  void Finish();

  std::vector<alarms::Evaluator::State> List() const;
  // The same rule may be added again. kBusy for another one under a name that is taken.
  Status Add(alarms::Rule rule);
  Status Remove(std::string_view name);
  // What was added and removed while the step ran, as a file of rules.
  std::string Changes() const;

 private:
  void Load(const LaunchMessage& launch, const Config& config, std::string_view changes);
  void TakeFile(const std::string& path, std::vector<alarms::Rule>& rules);
  void Evaluate(Nanos tick, bool complete);
  void OnEvent(const alarms::Event& event);
  void Remark(const alarms::Event& event);
  void Act(const alarms::Event& event);
  void ScheduleWatch();
  void OnChange();
  void Note(alarms::RuleLine change);
  void TellNeeds();

  Loop& loop_;
  const Clock& clock_;
  StepRecord& record_;
  Owner& owner_;
  const JobStep id_;
  const Nanos period_;
  const bool enabled_;
  AlarmActions actions_;

  MissingNodes nodes_;
  std::vector<Series> series_;   // ours, then those of the rows
  std::vector<Reduced> values_;  // the same
  Nanos last_row_ = 0;           // monotonic
  Loop::TimerId watch_timer_ = 0;
  std::string needs_;  // what the nodes were told last

  mutable std::mutex mutex_;  // evaluator_, changes_
  alarms::Evaluator evaluator_;
  std::vector<alarms::RuleLine> changes_;
  std::set<std::string, std::less<>> names_;  // of the rules that the step began with
  bool finished_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sonde::head
