// The end of a Node: what it holds goes up, then it leaves.
#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/log.h"
#include "daemon/node/node.h"
#include "daemon/own_cost.h"

namespace sonde::node {

using tree::Type;

void Node::OnTask(uint32_t rank, pid_t pid) {
  if (state_ != State::kRunning) return;
  tasks_.Add(rank, pid);
  suspension_.Add(rank, pid);
  application_.AddTask(rank, pid);
}

void Node::OnTaskExit(uint32_t rank, int wait_status) {
  // A task ends only after it has gone on, unless it is killed.
  const bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  if (suspended_ && !killed) LookForSuspension();
  tasks_.Ended(rank);
  suspension_.Ended(rank);
  ++bye_.tasks_ended;
  if ((wait_status & 0x7f) != 0) ++bye_.tasks_killed;
  bye_.exit_status = std::max(bye_.exit_status, wait_status);
  if (wait_status == 0) return;
  if (exits_.list.size() < kMaxTaskExits) {
    exits_.list.push_back({rank, wait_status});
  } else {
    ++exits_.left_out;
  }
}

void Node::Finish(bool launcher_gone) {
  if (state_ != State::kRunning) return;
  log::Debug("asked to finish");
  bye_.launcher_gone = launcher_gone && bye_.tasks_ended < launch_.tasks_here;
  loop_.Cancel(tick_timer_);
  loop_.Cancel(fabric_timer_);
  tasks_.Stop();
  const Nanos now = time_.Look();
  LookAtClock();
  bye_.ended = static_cast<uint64_t>(clock_.Of(now));
  finish_began_ = Clock::System().Monotonic();
  application_.CloseProxy();
  // The last word has values of all sources, but not as a tick of which other nodes have less.
  TakeDueTick(now);
  Sample(now, Extent::kAll);
  finish_timer_ = loop_.After(kFinishLimit, [this] { GiveUp(); });
  uplink_.LeaveOutHeldBack();
  state_ = State::kWaitingForChildren;
  head_.OnTasksEnded();
  registered() ? WaitForChildren() : WaitForHead();
}

// Until OnRegistered goes on. A host that drops packets would cost each step all of the
// limit.
void Node::WaitForHead() {
  const Nanos reach = kReachLimit + launch_.job.expected_nodes * kReachLimitEach;
  reach_timer_ = loop_.At(std::max(finish_began_, started_ + reach), [this] {
    reach_timer_ = 0;
    if (registered() || head_.heard()) return;
    OnNoHead({Code::kTimeout, "it has said nothing when the tasks had ended"});
  });
}

void Node::WaitForChildren() {
  AddOwnMoments();
  relay_.SendOwnEnd(clock_.Now(), recorder_.reduced_schema(), recorder_.reduced());
  if (relay_.children_done()) return Deliver();
  children_timer_ = loop_.After(kChildrenLimit, [this] {
    children_.SendLeave();
    children_timer_ = loop_.After(kLeaveLimit, [this] { Deliver(); });
  });
}

void Node::Deliver() {
  if (state_ != State::kWaitingForChildren) return;
  state_ = State::kDelivering;
  const Nanos now = Clock::System().Monotonic();
  const Nanos deadline = std::max(finish_began_ + kBlocksLimit, now);
  recorder_.Seal();
  blocks_.Finish(now, deadline);
  blocks_limit_timer_ = loop_.At(deadline, [this] { SendLastWord(); });
  RunBlocks();
  CheckGateway();
  CheckDelivered();
}

// The head seals the profile when all nodes have said goodbye: blocks come first.
void Node::SendLastWord() {
  if (std::exchange(last_word_, true)) return;
  relay_.SendRest();
  if (blocks_.unheard()) {
    Note("the end of its per-node series may be missing: it had no word in time that it is stored");
  }
  if (leaves_out_) TellLeftOut("ticks were left out until the end");
  SendBye();
  // Anything a child sends now would be lost here; when its link closes it turns to the head.
  child_links_.Close();
}

void Node::SendBye() {
  bye_.cpu_seconds = OwnCpuSeconds();
  bye_.memory_bytes = OwnPrivateBytes();
  bye_.bytes_sent = SentBytes();
  if (!exits_.list.empty()) head_.Send(Type::kExits, Encode(exits_));
  head_.Send(Type::kBye, Encode(bye_));  // or when it is there again
}

// Where blocks are joined, children that leave send theirs through here: over their connections to
// the head they would come one by one. No longer than kBlocksLimit.
bool Node::AwaitsBlocks() const { return head_joins_ && !child_links_.empty() && !last_word_; }

void Node::CheckDelivered() {
  if (state_ != State::kDelivering) return;
  if (blocks_.delivered() && !AwaitsBlocks()) SendLastWord();
  if (AllAcknowledged()) EndWhenFree();
}

bool Node::AllAcknowledged() const {
  return bye_acked_ && uplink_.frames_delivered() && uplink_.moments_delivered();
}

void Node::EndWhenFree() {
  if (gateway_.connections() == 0) return End();
  if (gateway_timer_ != 0) return;
  gateway_timer_ = loop_.At(finish_began_ + kGatewayLimit, [this] {
    gateway_.Leave();
    gateway_timer_ = loop_.After(kGatewayLeaveLimit, [this] { End(); });
  });
}

// The tasks' end has waited in vain for the daemon: somebody should know. A gateway that stays for
// others has nothing to tell.
void Node::GiveUp() {
  if (state_ == State::kDone) return;
  if (AllAcknowledged()) return End();
  const auto word = [](bool come) { return come ? "acknowledged" : "not acknowledged"; };
  const std::string what = fmt::format(
      "its daemon left after {} ms without word of everything: frames {}, moments {}, goodbye {}",
      kFinishLimit / kMillisecond, word(uplink_.frames_delivered()),
      word(uplink_.moments_delivered()), word(bye_acked_));
  failure_ = Status(Code::kTimeout, what);
  Note(what);
  End();
}

void Node::End() {
  if (state_ == State::kDone) return;
  log::Debug("done: frames {}, goodbye {}",
             uplink_.frames_delivered() ? "acknowledged" : "not acknowledged",
             bye_acked_ ? "acknowledged" : "not acknowledged");
  state_ = State::kDone;
  application_.CloseProxy();
  loop_.Cancel(tick_timer_);
  loop_.Cancel(finish_timer_);
  loop_.Cancel(reach_timer_);
  // Not from within a link's callback: `done` may destroy this.
  loop_.Post([this] {
    const Nanos begin = finish_began_ != 0 ? finish_began_ : Clock::System().Monotonic();
    standby_.Leave(begin + kActingLimit, [this] { loop_.Post(done_); });
  });
}

}  // namespace sonde::node
