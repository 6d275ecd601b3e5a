// The nodes of a step at its head: their control connections, and how they come, go, stay away and
// come back.
//
// A node gets an index in the order in which the nodes come. One whose connection is lost has a
// while to come back under its index, and is lost after that. A daemon that was started anew on a
// node gets an index of its own. What the record says of each node is written here.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "daemon/head/record/row_path.h"
#include "daemon/head/record/step_record.h"
#include "daemon/head/registry/absences.h"
#include "daemon/head/registry/head_state.h"
#include "daemon/head/registry/parents.h"
#include "daemon/head/registry/registrations.h"
#include "daemon/head/registry/succession.h"
#include "daemon/link/link.h"
#include "daemon/link/via_links.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "daemon/tree/children/child_links.h"

namespace sonde::head {

class Nodes final : private Parents::Owner, private Absences::Owner {
 public:
  // How long a node may stay away before it is lost: while the step runs, at its end, when all have
  // to find an acting head first, and when those that have found it are gone again.
  static constexpr Nanos kAwayLimit = 3 * kSecond;
  static constexpr Nanos kAwayAtEndLimit = 300 * kMillisecond;
  static constexpr Nanos kTakeoverLimit = 15 * kSecond;
  static constexpr Nanos kTakeoverAtEndLimit = 1500 * kMillisecond;
  // So many nodes an acting head may have at first, whatever it was told: of a heterogeneous step
  // it may know one component, and the others, or their data, come before any node says how many
  // they are.
  static constexpr size_t kNodesAtTakeover = 16'384;

  // The head. It is not called by the constructor, nor once this is gone.
  class Owner {
   public:
    // A node that has come through another one, its gateway, and proved the key there.
    virtual void OnProven(const tree::Registration& who, std::unique_ptr<tree::Link> link) = 0;
    // What a node is told first over its connection.
    virtual void Greet(uint32_t node, tree::Link& control) = 0;
    // A node has registered; `more`: the step is expected to have more nodes than before.
    virtual void OnRegistered(bool more) = 0;
    // A node's process asks something; a failure closes the connection.
    virtual Status OnAsk(uint32_t node, std::string_view payload) = 0;
    // What a node says of an exporter that it scrapes: a tree::JoinedMessage.
    virtual void OnJoined(uint32_t node, std::string_view payload) = 0;
    // It has said goodbye, was lost or replaced.
    virtual void OnGone(uint32_t node) = 0;
    // The connection of a node that stands by is lost, or (`away` is false) the node is back.
    virtual void OnStanding(const tree::Place& place, bool away) = 0;
    // Something may have become complete by what a node said, or did not say.
    virtual void CheckNodesDone() = 0;

   protected:
    ~Owner() = default;
  };

  // `links`: of the head's own children. `acting`: the head goes on where another one died.
  // `clock`: the step's.
  Nodes(Loop& loop, const Clock& clock, const Config& config, uint32_t expected, bool acting,
        StepRecord& record, RowPath& rows, tree::ChildLinks& links, Owner& owner);

  // The nodes of the head before: they are on their way here, unless they have left.
  void Inherit(const JobDescription& job, const HeadState& state);
  // Where the head is reached, numeric.
  void SetLocalHost(std::string host) { parents_.SetLocalHost(std::move(host)); }
  // Nodes are to go on when this head dies.
  void ChooseSuccessors();
  // Another head acts: the nodes go there once their connections are closed.
  void TellOfActing(const tree::Place& acting) {
    if (succession_ != nullptr) succession_->TellOf(acting);
  }
  bool has_successors() const { return succession_ != nullptr; }

  // Whether Add would take it.
  Status Check(const tree::Registration& who) const;
  // It comes for the first time and through a gateway, and is connected already: the gateway was so
  // slow that the node went past it. Or its daemon was started anew, and comes again in a moment.
  bool HasCome(const tree::Registration& who, const tree::Link& control) const;
  // A proven node; gives its index.
  uint32_t Add(const tree::Registration& who, std::unique_ptr<tree::Link> control);

  // The step is at its end: nodes have less time to come back from now on, and with Hurry those
  // that are away now as well.
  void SetEnding() { ending_ = true; }
  void Hurry() { absences_.Hurry(kAwayAtEndLimit); }
  // Another head takes over: nodes say their goodbyes to that one.
  void SetLeaving() { leaving_ = true; }
  // Those that are away have had their time to come.
  void LoseAway();

  // Others may come through this node: it has proved the key over a connection of its own. To an
  // acting head all come by themselves.
  bool MayBeGateway(const tree::Link& control) const;

  // A message over a node's control connection; false if there is none.
  bool SendTo(uint32_t node, tree::Type type, std::string_view payload) override;
  void SendToAll(tree::Type type, std::string_view payload);

  size_t size() const { return nodes_.size(); }
  uint32_t expected() const { return registrations_.expected(); }
  // Of the expected ones.
  size_t registered() const { return registrations_.size(); }
  bool connected(uint32_t node) const {
    return node < nodes_.size() && nodes_[node].control != nullptr;
  }
  bool gone(uint32_t node) const { return nodes_[node].gone; }
  bool all_gone() const { return gone_ == nodes_.size(); }
  // Some are connected and have not said goodbye.
  bool some_stay() const { return stay_ > 0; }
  // Connections that come through no gateway.
  size_t direct() const { return direct_; }
  uint32_t parent(uint32_t node) const { return parents_.Of(node); }
  std::string carriers() const { return parents_.Carriers(); }
  const std::string& carrier(uint32_t node) const { return parents_.CarrierOf(node); }
  std::optional<Absences::Overdue> away(uint32_t node) const { return absences_.Of(node); }
  // How many have said goodbye, and what all of them together said.
  uint32_t byes() const { return byes_; }
  const tree::Bye& ends() const { return ends_; }

 private:
  struct Node {
    std::unique_ptr<tree::Link> control;  // nullptr: none now
    bool gone = false;                    // said goodbye, was lost or replaced
    std::shared_ptr<tree::ViaLinks> via;  // of the nodes that come through it; nullptr: none do
    bool knows = false;                   // has shown that it knows its index
    bool Stays() const { return control != nullptr && !gone; }
  };

  void AddNodeNote(uint32_t node, std::string_view text) override;
  void OnOverdue(const std::vector<Absences::Overdue>& nodes) override;

  bool IsUnknown(uint32_t index) const;
  // An acting head's nodes have indexes below this, of which it may not have been told.
  size_t Most() const;
  // What is told of nodes with higher numbers than there are is left out.
  void LimitNumbers();
  std::optional<uint32_t> UntoldIndex(const tree::Registration& who) const;
  uint32_t NewNode(const tree::Registration& who);
  void Learn(const tree::Registration& who);
  void ComesBack(const tree::Registration& who);
  void Enter(const tree::Registration& who, uint32_t index);
  void Replace(uint32_t index);
  void CloseControl(Node& node);
  void OnMessage(uint32_t index, uint8_t type, std::string_view payload);
  void OnVia(uint32_t index, tree::Type type, std::string_view payload);
  void OnClosed(uint32_t index, const Status& why);
  void OnExits(uint32_t index, std::string_view payload);
  void OnBye(uint32_t index, std::string_view payload);
  void OnAskTime(uint32_t index, std::string_view payload);
  void Lose(const Absences::Overdue& lost);
  void Leaves(uint32_t index);

  Loop& loop_;
  const Clock& clock_;
  const Config config_;
  const bool acting_;
  const Nanos began_ = Clock::System().Monotonic();
  StepRecord& record_;
  RowPath& rows_;
  tree::ChildLinks& links_;
  Owner& owner_;

  std::vector<Node> nodes_;
  Registrations registrations_;
  Absences absences_;
  Parents parents_;
  std::unique_ptr<Succession> succession_;  // nullptr: there is no other host to go on
  tree::Bye ends_;                          // of all nodes together
  uint32_t byes_ = 0;
  size_t gone_ = 0;
  size_t stay_ = 0;
  size_t direct_ = 0;
  bool ending_ = false;
  bool leaving_ = false;
};

}  // namespace sonde::head
