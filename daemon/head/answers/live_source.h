// The running step as a data source of the web server.
//
// What the record knows is answered at once, on the web server's thread, and so is a question about
// the whole step as far as its rows answer it (daemon/head/answers/whole_step.h). Questions by host
// travel down the tree (daemon/head/answers/node_questions.h).
//
// Thread safety: as DataSource says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/head/alarms/alarms.h"
#include "daemon/head/answers/hosts_now.h"
#include "daemon/head/answers/node_questions.h"
#include "daemon/head/answers/pushed_metrics.h"
#include "daemon/head/answers/settled_pieces.h"
#include "daemon/head/answers/step_nodes.h"
#include "daemon/head/answers/stored_series.h"
#include "daemon/head/record/step_record.h"
#include "daemon/tree/query_fanout.h"
#include "web/source/data_source.h"
#include "web/source/tick_signal.h"

namespace sonde::head {

// How much niceness threads that work for viewers have beyond the loop's.
inline constexpr int kNicenessOfClients = 10;

class LiveSource final : public web::DataSource {
 public:
  // `stored`: what nodes that are gone have left; nullptr: nothing. `finish` puts answers by host
  // together; without it threads of this object do.
  LiveSource(const StepRecord& record, std::shared_ptr<StepNodes> nodes,
             std::shared_ptr<const StoredSeries> stored,
             const NodeQuestions::Executor& finish = nullptr);

  // As Query, for the step's own programs: they do not wait behind viewers, and small answers come
  // on the loop's thread.
  void QueryForStep(const QuerySpec& spec, Callback callback) const;

  // Before anything is asked; they outlive the askers.
  void UseAlarms(head::Alarms* alarms) { alarms_ = alarms; }
  void SetProfileLimit(uint64_t bytes) { profile_limit_ = bytes; }

  void Jobs(size_t limit, JobsCallback callback) const override;
  void GetProfile(const JobStep& id, ProfileCallback callback) const override;
  bool HasOneStep() const override { return true; }
  void ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const override;
  void Names(NamesCallback callback) const override;
  void Query(const QuerySpec& spec, Callback callback) const override;
  void QueryForPart(const QuerySpec& spec, const QueryGrid& grid,
                    PartCallback callback) const override;
  void Notes(Nanos first, Nanos last, NotesCallback callback) const override;
  web::TickSignal* ticks() const override { return &ticks_; }
  void ReadLive(const JobStep& id, const IsWanted& wanted, Nanos after, size_t limit,
                RowsCallback callback) const override;
  uint64_t ProfileLimit() const override { return profile_limit_; }
  Status PauseCounters(const JobStep& id, bool paused) const override;
  Result<std::vector<web::AlarmState>> Alarms(const JobStep& id) const override;
  Status AddAlarm(const JobStep& id, const alarms::Rule& rule) const override;
  Status RemoveAlarm(const JobStep& id, const std::string& name) const override;
  Status Push(const JobStep& id, const web::PushedValue& value) const override;
  void Tree(const JobStep& id, TreeCallback callback) const override;
  void Links(const JobStep& id, LinkTreeCallback callback) const override;
  void Join(const JobStep& id, const web::ScrapeTarget& target, const std::string& node,
            JoinCallback callback) const override;
  void Exporters(const JobStep& id, ExportersCallback callback) const override;
  void Unjoin(const JobStep& id, const std::string& instance,
              UnjoinCallback callback) const override;

 private:
  // How many questions by host travel at a time: those of viewers, and of the step's programs.
  static constexpr size_t kOfClients = 4;
  static constexpr size_t kOfStep = tree::QueryFanout::kMaxOpen - kOfClients;

  Status IsHere(const JobStep& id) const;
  web::LiveRows RowsAfter(const IsWanted& wanted, Nanos after, size_t limit) const;
  Status CheckOurs(const JobStep& id) const;
  void Query(NodeQuestions& nodes, const QuerySpec& spec, Callback callback) const;

  const StepRecord& record_;
  const JobStep id_;
  const Nanos period_;
  uint64_t profile_limit_ = 0;
  mutable web::TickSignal ticks_;
  const std::shared_ptr<StepNodes> nodes_;
  const std::shared_ptr<SettledPieces> settled_ = std::make_shared<SettledPieces>();
  const std::shared_ptr<const HostsNow> hosts_;
  mutable PushedMetrics pushed_;
  const std::shared_ptr<NodeQuestions> for_clients_;
  const std::shared_ptr<NodeQuestions> for_step_;
  head::Alarms* alarms_ = nullptr;
};

}  // namespace sonde::head
