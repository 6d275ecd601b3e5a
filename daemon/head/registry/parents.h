// The tree's shape as its nodes are told it: who sends to whom, and where.
//
// A node asks for a parent over its control connection. It gets that of its place (Placement), once
// that node has said where its children connect; until then, and without a parent, its control
// connection serves. When a node goes, the nodes that move for it are told.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "daemon/head/registry/homecoming.h"
#include "daemon/link/libfabric/lazy_fabric.h"
#include "daemon/link/libfabric/socket_fabric.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "daemon/tree/children/child_links.h"
#include "daemon/tree/placement.h"

namespace sonde::head {

class Parents {
 public:
  // Whose nodes they are: the head. It is not called by the constructor, nor once this is gone.
  class Owner {
   public:
    // A message over a node's control connection; false if there is none.
    virtual bool SendTo(uint32_t node, tree::Type type, std::string_view payload) = 0;
    // What a reader of the profile must know of a node.
    virtual void AddNodeNote(uint32_t node, std::string_view text) = 0;

   protected:
    ~Owner() = default;
  };

  // `links`: of the head's own children.
  Parents(Loop& loop, const Config& config, uint32_t expected, tree::ChildLinks& links,
          Owner& owner);
  ~Parents();

  // Where the head is reached, numeric.
  void SetLocalHost(std::string host) { local_host_ = std::move(host); }
  // Nodes of the step, as far as known.
  void Expect(uint32_t nodes) { placement_.Expect(nodes); }
  // Nodes come by index, 0 first; `switches` as Slurm tells them.
  void Add(std::string_view switches);
  // The node is there again, under its index, and can be sent messages: it sends to `parent`.
  void OnBack(uint32_t index, std::string_view switches, uint32_t parent);
  // Gone or lost. It may still be sent to for what it has to deliver.
  void Remove(uint32_t index);

  // kWantParent and kListening.
  void OnWantParent(uint32_t index, std::string_view payload);
  void OnListening(uint32_t index, std::string_view payload);

  // What carries the data of the step's links: "sockets, cxi". Each node's connection to the head
  // is a socket.
  std::string Carriers() const;

  // The parent that the node was told last; the head, if none.
  uint32_t Of(uint32_t index) const { return nodes_[index].parent; }
  // What carries the link to it; "": another head told the node.
  const std::string& CarrierOf(uint32_t index) const { return nodes_[index].carrier; }

 private:
  struct Node {
    bool asks = false;                   // has asked for a parent
    uint32_t parent = tree::kHeadIndex;  // it was told last
    std::string carrier{tree::SocketFabric::kProvider};
    uint32_t wanted = tree::kHeadIndex;  // it is to be told: there may be no address yet
    bool listen_asked = false;
    std::string address;            // where its children connect
    std::vector<uint32_t> waiting;  // for the address, unless they are to have another parent now
  };

  bool SendsTo(uint32_t node, uint32_t other) const;
  void Assign(uint32_t child, uint32_t parent);
  // The nodes that still wait for this node to be their parent.
  std::vector<uint32_t> TakeWaiting(uint32_t index);
  void AssignHead(uint32_t child);
  void Tell(uint32_t child, uint32_t parent, const std::string& address);
  void Listen(const Result<tree::Fabric*>& fabric);
  void BringHome();

  Loop& loop_;
  const Config config_;
  tree::ChildLinks& links_;
  Owner& owner_;
  tree::Placement placement_;
  tree::Homecoming homecoming_{placement_};
  Loop::TimerId home_timer_ = 0;
  tree::LazyFabric fabric_;
  bool fabric_asked_ = false;   // to listen; what became of it is told once
  std::string fabric_address_;  // empty: none
  std::string local_host_;
  std::vector<Node> nodes_;
  std::set<std::string> carriers_;  // beside sockets
};

}  // namespace sonde::head
