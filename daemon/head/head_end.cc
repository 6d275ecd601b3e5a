// The end of a step at its head: the profile is sealed and reported, or another head goes on.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/log.h"
#include "daemon/head/head.h"
#include "daemon/head/record/end_state.h"
#include "daemon/head/record/last_report.h"
#include "daemon/head/record/uncounted.h"
#include "daemon/own_cost.h"
#include "profiles/model/parts.h"
#include "profiles/model/summary.h"

namespace sonde::head {

using tree::Type;

void Head::Finish(bool launcher_gone) {
  if (state_ != State::kRunning) return;
  if (launch_.acting) {
    CheckNodesDone();
    hand_over_timer_ = loop_.After(kHandOverAfter, [this] { LeaveToNext(); });
    return;
  }
  log::Debug("asked to finish: {} of {} nodes said goodbye", nodes_.byes(), nodes_.size());
  state_ = State::kWaitingForNodes;
  store_->Stop();
  nodes_.SetEnding();
  nodes_.Hurry();
  finish_timer_ = loop_.After(launcher_gone ? kOrphanLimit : kFinishLimit, [this] { Seal(); });
  CheckNodesDone();
}

// Once every node of the step has come and gone there is nothing to wait for: the report is ready
// when srun asks for it.
void Head::CheckNodesDone() {
  const uint32_t byes = nodes_.byes();
  const bool ending = state_ == State::kWaitingForNodes ||
                      (state_ == State::kRunning && byes != 0 && byes >= nodes_.expected()) ||
                      (launch_.acting && (byes != 0 || finish_timer_ == 0));
  if (ending && nodes_.all_gone() && rows_.children().done()) Seal();
}

// Another head goes on from what is stored; the nodes look for it as if this one had died.
void Head::LeaveToNext() {
  if (state_ != State::kRunning) return;
  if (!nodes_.some_stay()) {
    nodes_.LoseAway();
    return Seal();
  }
  // What is being stored now is older than that.
  if (store_->storing()) {
    leave_when_stored_ = true;
    return;
  }
  log::Debug("this node is done: another one acts as head");
  store_->StoreLast();
  nodes_.SetEnding();
  nodes_.SetLeaving();
  state_ = State::kLeaving;
  archive_->WhenIdle([this] {
    state_ = State::kDone;
    rows_.Stop();
    done_("");
  });
}

// An acting head has taken this one for dead. It has the step from now on, whoever of the two has
// more nodes: it began with all that this one had stored, and this one could not begin with what
// it has. The profile is put together of the parts of both, and this one's ends here as if this
// head had died, so that the acting head's part says how the step ended. Of two acting heads the
// one whose node has the lower index has it.
void Head::YieldTo(const tree::Place& acting) {
  if (state_ != State::kRunning) return;
  // What is being stored now is older than that.
  if (store_->storing()) {
    yield_when_stored_ = acting;
    return;
  }
  const std::string own = record_.Job()->launch_host;
  std::string host = record_.Host(acting.index);
  if (host.empty()) host = acting.host;
  const std::string now = FormatTime(clock_.Now());
  log::Warning("{} acts as head: this one leaves the step to it", host);
  if (launch_.acting || out_of_reach_ == 0) {
    AddNote(
        fmt::format("{} two nodes had gone on as acting heads, and the one on {} left it to the "
                    "one on {} at {}",
                    kYieldedNote, own, host, now));
  } else {
    AddNote(
        fmt::format("{} nodes did not reach the head on {} from {} on; it came back at {}, and "
                    "the acting head on {} had gone on",
                    kYieldedNote, own, FormatTime(out_of_reach_), now, host));
  }
  state_ = State::kLeaving;
  nodes_.SetEnding();
  nodes_.SetLeaving();
  store_->StoreLast(false);
  rendezvous_.reset();  // who comes is refused, and goes on to the other one
  nodes_.TellOfActing(acting);
  std::string report;
  // Of an acting head nobody reads it.
  if (config_.report != "off" && !launch_.acting) {
    report = fmt::format(
        "sonde: nodes did not reach the head on {} from {} on, and another head, on {}, has gone "
        "on with the telemetry; the job was not disturbed. See all of it with: sonde show {}\n",
        own, FormatTime(out_of_reach_), host, launch_.job.id.ToString());
  }
  yield_timer_ = loop_.After(kYieldTime, [this, report] {
    yield_timer_ = 0;
    archive_->WhenIdle([this, report] {
      state_ = State::kDone;
      rows_.Stop();
      done_(report);
    });
  });
}

void Head::Seal() {
  if (state_ != State::kRunning && state_ != State::kWaitingForNodes) return;
  store_->Stop();
  nodes_.SetEnding();
  const EndState ended = StateOf(nodes_.ends(), std::nan(""));
  const bool killed = ended == EndState::kCancelled || nodes_.byes() == 0;
  if (killed && !why_killed_) {
    if (std::exchange(asking_why_, true)) return;
    return slurm_.WhyKilled(clock_.Now(), [this](EndState why) {
      why_killed_ = why;
      Seal();
    });
  }
  state_ = State::kSealing;
  log::Debug("sealing the profile");
  loop_.Cancel(finish_timer_);
  server_.reset();
  questions_.reset();
  alarms_->Finish();
  // Those that have not said goodbye need not look for another head.
  nodes_.SendToAll(Type::kOver, "");
  const Nanos now = clock_.Look();
  rows_.Finish(now);
  const double kills = OutOfMemoryKills(record_.Snapshot());
  const EndState state = StateOfStep(kills, now);
  record_.Update([&](JobDescription& j) {
    j.end = now;
    j.exit_status = nodes_.ends().exit_status;
    j.state = state;
  });
  NoteMissing();
  NoteUncounted();
  record_.UpdateCost([&](OwnCost& cost) {
    cost.cpu_seconds = nodes_.ends().cpu_seconds;
    if (launch_.role == Role::kHead) cost.cpu_seconds += OwnCpuSeconds();
    cost.peak_node_memory = nodes_.ends().memory_bytes;
    cost.bytes_sent = nodes_.ends().bytes_sent;
    if (launch_.role == Role::kHead) cost.carriers = nodes_.carriers();
  });
  archive_->Finish(record_.Snapshot(), [this](const Status& status) { Report(status); });
  finish_timer_ = loop_.After(kSealLimit, [this] {
    Report({Code::kTimeout, "the profile is still being written"});
  });
}

// Tasks that were killed as the time was over may have ended with a code of their own.
EndState Head::StateOfStep(double out_of_memory_kills, Nanos now) const {
  const EndState state =
      nodes_.byes() == 0 ? EndState::kLost : StateOf(nodes_.ends(), out_of_memory_kills);
  if (state == EndState::kCancelled) return why_killed_.value_or(state);
  if (state == EndState::kLost && why_killed_ == EndState::kNodeFail) return EndState::kNodeFail;
  const bool in_time = slurm_.WhyKilledAsFarAsKnown(now) != EndState::kTimeout;
  return state == EndState::kFailed && !in_time ? EndState::kTimeout : state;
}

void Head::NoteClock() {
  for (const std::string& note : clock_.TakeNotes()) {
    AddNote("the clock of the head's host " + note);
  }
}

// A batch script's calls are those of its steps, as a rule, whose profiles have them.
void Head::NoteUncounted() {
  if (nodes_.byes() == 0 || record_.Job()->id.IsScript()) return;
  std::string note = UncountedNote(launch_.calls, *record_.AllSeries());
  if (!note.empty()) AddNote(std::move(note));
}

void Head::NoteMissing() {
  NoteClock();
  rows_.NoteMissing(nodes_.size());
  for (std::string& note : intake_.Notes(record_.Job()->nodes)) AddNote(std::move(note));
  if (nodes_.registered() < nodes_.expected()) {
    const size_t missing = nodes_.expected() - nodes_.registered();
    AddNote(launch_.role == Role::kHead
                ? fmt::format("{} of {} nodes never reported: is Sonde installed there?", missing,
                              nodes_.expected())
                : fmt::format("{} of {} nodes never reported, or the head died before it had "
                              "recorded them",
                              missing, nodes_.expected()));
  }
}

void Head::Report(const Status& archived) {
  if (std::exchange(state_, State::kDone) == State::kDone) return;
  rows_.Stop();
  log::Debug("profile sealed: {}", archived.ok() ? "ok" : archived.message());
  loop_.Cancel(finish_timer_);
  if (archived.code() != Code::kTimeout) not_stored_ = archived;
  record_.UpdateCost([&](OwnCost& cost) { cost.stored_bytes = archive_->profile_bytes(); });
  std::string text;
  if (config_.report != "off") {
    const bool brief = config_.report == "short";
    text = ReportOf(record_, brief, launch_.columns, launch_.config_path);
    if (!archived.ok()) {
      text += fmt::format("sonde: the profile is not stored: {}\n", archived.message());
    } else if (!brief) {  // which ends with how to see the rest
      text += fmt::format("sonde: profile in {}; see it again with: sonde show {}\n", archive_path_,
                          launch_.job.id.ToString());
    }
  }
  archive_->Ingest();
  forwarding_->End();
  done_(text);
}

}  // namespace sonde::head
