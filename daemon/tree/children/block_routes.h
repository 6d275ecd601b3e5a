// The ways of blocks' acknowledgements down to the nodes that the blocks came from.
//
// An acknowledgement goes with the next pulse and all others for the same child; or, if the node
// has to do something or is about to leave, when Flush is called.
//
// A Child is a child over one link; it belongs to the caller, and stays where it is until Remove.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/message/message.h"
#include "daemon/tree/children/frame_intake.h"

namespace sonde::tree {

class BlockRoutes {
 public:
  class Child {
   public:
    explicit Child(const FrameIntake::Sender& sender) : sender_(sender) {}

   private:
    friend class BlockRoutes;
    const FrameIntake::Sender& sender_;
    std::vector<uint32_t> nodes_;  // that it has brought blocks of; some may sit elsewhere by now
    std::string acks_;
    bool hurry_ = false;
  };

  // A block of that node has come from the child.
  void OnBlock(uint32_t node, Child& child);
  // The child's link is gone.
  void Remove(Child& child);
  // An acknowledgement on its way; one to a node of which no block has come is dropped.
  void Add(const BlockAck& ack);
  void Flush();
  // Sends all, of children that contribute as the first part of a packet.
  void SendBeforePulse();

 private:
  static void Send(Child& child);

  std::unordered_map<uint32_t, Child*> routes_;  // node -> the child it sits behind
  std::vector<Child*> waiting_;                  // with acknowledgements
};

}  // namespace sonde::tree
