// What the step's own processes ask, answered by its head.
//
// Every question becomes queries of LiveSource (daemon/head/answers/step_question.h). One that
// takes little time is answered at once, for to wake another thread takes longer; the others, and
// those beyond a share of the loop's time (loop_share.h), are for a thread of their own, so that
// none holds the loop up. The thread starts with the first of them.
//
// A subscription is a question asked again at every tick that is finished, or finished anew by a
// part that came late; equal subscriptions of several nodes are asked once. At most kMaxPending
// ticks wait for the answer to the tick before; then the oldest is left out.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/time.h"
#include "daemon/head/answers/live_source.h"
#include "daemon/head/answers/loop_share.h"
#include "daemon/head/record/worker.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "libclient/ask/layout.h"

namespace sonde::head {

class Questions {
 public:
  static constexpr size_t kMaxSubscriptions = 1024;  // different ones, of the whole step
  static constexpr size_t kMaxSubscribers = 65536;
  static constexpr size_t kMaxWaiting = 4096;  // questions that are not answered yet
  static constexpr size_t kMaxPending = 16;

  // Sends to a node; one that is gone is passed over.
  using Send = std::function<void(uint32_t node, const tree::AnswerMessage& answer)>;

  Questions(Loop& loop, std::shared_ptr<const LiveSource> source, const StepRecord& record,
            Nanos period, Send send);
  // Waits for the question that is being answered.
  ~Questions();
  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;

  // A failure means that the node broke the protocol.
  Status OnAsk(uint32_t node, const tree::AskMessage& ask);
  // A row is in the record: a new one, or an earlier one again.
  void OnRow(Nanos tick, bool late);
  // The node's processes ask no more.
  void OnGone(uint32_t node);

  size_t subscriptions() const { return subscriptions_.size(); }

 private:
  using Subscriber = std::pair<uint32_t, uint64_t>;  // node, and its number
  struct Subscription {
    QuerySpec spec;
    std::set<Subscriber> subscribers;  // a program on each node may be one, and all go at the end
    uint64_t serial = 0;
    bool asked = false;                          // the answer for a tick is awaited
    std::deque<std::pair<Nanos, bool>> pending;  // ticks that came meanwhile, and whether late
  };
  struct Body {
    client::AskKind kind = client::AskKind::kFailed;
    std::string bytes;  // empty: there is nothing to send
  };
  // Makes the bytes to send from the answer; on any thread.
  using Make = std::function<Body(Result<web::Answer>)>;

  void OnQuery(uint32_t node, uint64_t id, const QuerySpec& spec);
  void OnList(uint32_t node, uint64_t id, const std::string& metric);
  void OnAlarm(uint32_t node, uint64_t id, std::string_view body);
  void OnSubscribe(uint32_t node, const tree::AskMessage& ask, QuerySpec spec);
  void OnCancel(const Subscriber& who);
  void AskNext(const std::string& key, Subscription& subscription);
  void OnValues(const std::string& key, uint64_t serial, const Body& body);
  void Answer(uint32_t node, uint64_t id, client::AskKind kind, std::string body);
  void Fail(uint32_t node, uint64_t id, const Status& why);
  enum class Where : unsigned char { kWorker, kLoop };
  // `done` is called on the loop, unless this object is gone by then.
  void Query(Where where, const QuerySpec& spec, Make make, std::function<void(const Body&)> done);
  // Posts to the loop, from any thread, for as long as this object is there.
  std::function<void(std::function<void()>)> Poster();

  Loop& loop_;
  const std::shared_ptr<const LiveSource> source_;
  const StepRecord& record_;
  const Nanos period_;
  const Send send_;
  std::map<std::string, Subscription> subscriptions_;  // by the encoded spec
  std::map<Subscriber, std::string> subscribers_;      // and what they subscribed to
  uint64_t next_serial_ = 1;
  size_t waiting_ = 0;
  LoopShare share_;
  bool asking_ = false;  // on the loop, within Query
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Worker worker_{0};  // last: it uses the others
};

}  // namespace sonde::head
