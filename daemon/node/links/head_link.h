// A node's connection to the head of its step: finds it, proves the key, and when the connection is
// lost, finds the head again or whoever goes on in its place.
//
// In a large step the connection goes through a gateway (gateway_plan.h). Nodes do not begin in one
// moment, so a node looks for its gateway for kGatewaySearch, and goes to the head itself if it has
// not found it by then. When a gateway says that it leaves, the node tries the other one that it
// knows, once; in all other cases a node whose connection is lost goes on without gateways.
//
// The head names its successors beforehand: nodes that listen for that case (Place). When the
// connection is lost, these are tried in turn:
//   the head      one that is still there takes the node back under its index
//   successors    in their order; one that has found the head dead becomes acting head and takes
//                 the others in; one that comes to itself in the list becomes it
// A host that refuses is dead. One that does not answer may only be slow, or not know yet: nobody
// goes past the first of them before kPatience, and past each other one before the same time again,
// for that one may have lost the head later. If two go on all the same, the one whose node has the
// lower index has the step (daemon/head/registry/rivals.h). During the search the node goes on
// sampling, and what has a way up without the head goes there. After kGiveUp, or at once if nobody
// stands by yet, the telemetry of this node ends. While the job is suspended none of these times
// run: the node asks the head alone, every kPauseSuspended. The nodes of a large step come to a
// successor one after the other, by their indexes, and have more patience with an answer: if all
// came in one moment, the connections that wait there would be given up before their turn, and
// again after that. A first connection that fails is made again for kGiveUpFirst, whatever seems to
// be the reason.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/launch_message.h"
#include "daemon/link/link.h"
#include "daemon/link/socket_link.h"
#include "daemon/link/trust/handshake.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"

namespace sonde::node {

class HeadLink {
 public:
  // For an answer of one of them; longer by so much for each node that it may have to answer, but
  // not for longer than kPatience.
  static constexpr Nanos kAnswer = 2 * kSecond;
  static constexpr Nanos kAnswerEach = 400 * kMicrosecond;
  // A node comes to a successor so much later than the node before it, and the last one of all
  // nodes that much later than the first: an acting head needs half of that for one.
  static constexpr Nanos kEachNode = 100 * kMicrosecond;
  static constexpr Nanos kAllNodes = 8 * kSecond;
  static constexpr Nanos kPatience = 6 * kSecond;
  static constexpr Nanos kPause = 100 * kMillisecond;
  static constexpr Nanos kPauseSuspended = kSecond;
  static constexpr Nanos kGiveUp = 60 * kSecond;
  static constexpr Nanos kGiveUpFirst = 3 * kSecond;
  static constexpr Nanos kGatewaySearch = 2 * kSecond;
  // For a gateway's answer, and between two rounds of its ports.
  static constexpr Nanos kGatewayAnswer = kSecond;
  static constexpr Nanos kGatewayPause = 50 * kMillisecond;
  // A gateway from which nothing comes for so long after something was sent is asked whether it is
  // there, and has so long for the answer: as long as a parent may be silent, and less once the
  // tasks have ended, when the goodbye must reach the head.
  static constexpr Nanos kGatewayWord = 250 * kMillisecond;
  static constexpr Nanos kGatewayPatience = 2 * kSecond;
  static constexpr Nanos kGatewayEndPatience = 750 * kMillisecond;
  // A timer that is so late says that this process did not run, and nothing of the gateway.
  static constexpr Nanos kGatewayLate = 100 * kMillisecond;
  // It is asked as well at a tick when nothing was heard for so long, or up to kGatewayQuietMore
  // longer, so that its nodes do not ask all at once.
  static constexpr Nanos kGatewayQuiet = 10 * kSecond;
  static constexpr Nanos kGatewayQuietMore = 4 * kSecond;

  // Whose connection it is: the node. It is not called by the constructor, nor once this is gone.
  class Owner {
   public:
    virtual tree::Registration registration() const = 0;
    // The head has this node; called again after each loss. `waited`: since our proof was sent.
    virtual void OnWelcome(const tree::Welcome& welcome, Nanos waited) = 0;
    virtual void OnHeadMessage(tree::Type type, std::string_view payload) = 0;
    // The connection is lost and looked for; link() is null, `link` is about to be destroyed.
    virtual void OnHeadLost(tree::Link& link, const Status& why) = 0;
    // There is no connection, and none is looked for any more.
    virtual void OnNoHead(const Status& why) = 0;
    // The same, because the head has said that the step is over, or that it does not want this
    // node.
    virtual void OnOver() = 0;
    // The job is suspended, and with it perhaps the head.
    virtual bool IsSuspended() const = 0;
    // This node is next. False if it cannot be acting head.
    virtual bool BecomeHead() = 0;
    // Something that a reader of the profile must know.
    virtual void Note(std::string text) = 0;

   protected:
    ~Owner() = default;
  };
  HeadLink(Loop& loop, const StepKey& key, Owner& owner);
  ~HeadLink();

  // Over the network. `ways`: the doors of this node's gateway, and those of the other one it may
  // try; none: it comes to the head.
  void Connect(const std::string& host, uint16_t port,
               std::vector<std::vector<tree::Place>> ways = {});
  // A gateway that has not been found by now is not looked for any more; one that was found is
  // asked whether it is there.
  void OnTasksEnded();
  // At every tick: whether the gateway is there. `sent`: data went over the link.
  void CheckGateway(bool sent);
  // In the same process; it needs no proof.
  void Use(std::unique_ptr<tree::Link> link);
  // As the head that is there has named them. `own`: this node's index.
  void SetSuccessors(std::vector<tree::Place> places, uint32_t own);
  // Of an acting head on this node: where nodes with lower indexes stood by, whichever head has
  // named them, for two heads may have named different nodes. Not the head that was lost last,
  // which yields to this one.
  std::vector<tree::Place> PlacesBefore() const;

  // nullptr while there is none that has welcomed us.
  tree::Link* link() const { return welcome_ ? link_.get() : nullptr; }
  // The head has said something, though it may not have welcomed us yet.
  bool heard() const { return heard_; }
  // False if there is none, or it does not take it.
  bool Send(tree::Type type, std::string_view payload);
  // Numeric: where the head sees this node. "" until then.
  const std::string& local_host() const { return local_host_; }
  // Over all connections there were.
  uint64_t bytes_sent() const { return sent_before_ + (link_ ? link_->bytes_sent() : 0); }

 private:
  // Whether a gateway is being looked for.
  bool seeks_gateway() const { return seek_until_ != 0; }
  void ConnectDirectly();
  void SeekGateway(Nanos until);
  void TryGateway();
  void NextDoor();
  void GoDirectly();
  // Whether the connection goes through one.
  bool through_gateway() const { return welcome_ && !gateway_.empty(); }
  void AwaitGateway();
  void AskGateway();
  void AwaitAnswer();
  void OnGatewaySilent(Nanos due);
  void Try();
  Nanos EachNode() const;
  Nanos Answer() const;
  void Again(const Status& why);
  Status Open(const tree::Place& head, tree::Channel::Purpose purpose);
  void OnHandshake(uint8_t type, std::string_view payload);
  void OnMessage(uint8_t type, std::string_view payload);
  void OnClosed(const Status& why);
  void AskHeadAgain(Nanos pause);
  bool GivesUp(const Status& why) const;
  void Drop();

  Loop& loop_;
  const StepKey key_;
  Owner& owner_;
  std::unique_ptr<tree::Link> link_;
  const tree::SocketLink* socket_ = nullptr;  // link_, until it is proven
  std::unique_ptr<tree::ConnectingHandshake> handshake_;
  Nanos proof_sent_ = 0;  // monotonic
  std::string local_host_;
  uint64_t sent_before_ = 0;
  bool heard_ = false;
  bool welcome_ = false;
  bool known_ = false;  // was ever welcome

  tree::Place head_;  // where we are, or were last
  std::vector<tree::Place> successors_;
  // Of all lists there were; the kMaxSuccessors lowest.
  std::map<uint32_t, tree::Place> stood_by_;
  uint32_t own_ = tree::kHeadIndex;
  std::vector<std::vector<tree::Place>> ways_;  // not tried yet, but for the first while seeking
  size_t door_ = 0;                             // of ways_[0]
  Nanos seek_until_ = 0;                        // monotonic; 0: no gateway is looked for
  bool left_by_gateway_ = false;
  std::string gateway_;          // by name; "": the connection goes through none
  Nanos heard_at_ = 0;           // monotonic; from a gateway
  bool awaits_gateway_ = false;  // nothing was heard since something was sent
  bool tasks_ended_ = false;
  size_t next_ = 0;    // 0: head_, else of successors_ the one before
  size_t silent_ = 0;  // of those before it in this round, how many did not answer
  Nanos lost_at_ = 0;  // monotonic; of the first connection, when it first failed
  Loop::TimerId timer_ = 0;
};

}  // namespace sonde::node
