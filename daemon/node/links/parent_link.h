// A node's link to its parent in the tree, over the fabric: connects to the one that the head
// names, proves the key, notices when nothing is heard of it any more, and asks for another.
//
// Until it is proven, and when it is lost, the control connection serves.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/launch_message.h"
#include "daemon/link/libfabric/fabric.h"
#include "daemon/link/link.h"
#include "daemon/link/trust/handshake.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"

namespace sonde::node {

class ParentLink {
 public:
  // After so much silence the parent is gone: two of its pulses are missing then.
  static constexpr Nanos kSilence = 2 * kSecond;
  // So many parents in a row that were never reached.
  static constexpr uint32_t kMaxFailed = 3;

  // Whose link it is: the node. It is not called by the constructor, nor once this is gone.
  class Owner {
   public:
    virtual tree::Registration registration() const = 0;
    // Asks the head for a parent, other than `failed` (kHeadIndex: none has); false if it cannot be
    // asked now.
    virtual bool AskForParent(uint32_t failed) = 0;
    // The link is proven: data may go over it.
    virtual void OnParentProven(tree::Link& link) = 0;
    // The link goes away. Returns whether data went over it.
    virtual bool OnParentLost(tree::Link& link) = 0;
    virtual void OnUplinkMessage(tree::Type type, std::string_view payload) = 0;
    virtual void Note(std::string text) = 0;

   protected:
    ~Owner() = default;
  };
  ParentLink(Loop& loop, const StepKey& key, Owner& owner)
      : loop_(loop), key_(key), owner_(owner) {}

  // The head has named a parent. Without an address: none, the control connection shall serve.
  void Connect(tree::Fabric& fabric, const tree::ParentAddress& parent);
  // Asks for a parent, other than the last.
  void Ask();
  // The request will not be answered any more: the head is another, or was away.
  void Forget() { asked_ = false; }
  // Lets go of a silent parent. While data goes over the link, at every tick: a machine with too
  // much to do, whose tick is `late`, does not hold that against its parent.
  void Check(Nanos late);
  // Lets go of the parent, if there is one, and asks for another.
  void Leave();

  // nullptr: none.
  const tree::Link* link() const { return link_.get(); }
  // The parent at the other end of the link; kHeadIndex if there is no link.
  uint32_t index() const { return link_ == nullptr ? tree::kHeadIndex : index_; }
  // Over all links there were.
  uint64_t bytes_sent() const { return sent_before_ + (link_ ? link_->bytes_sent() : 0); }

 private:
  void Listen();
  void OnMessage(uint8_t type, std::string_view payload);
  bool LetGo();

  Loop& loop_;
  const StepKey key_;
  Owner& owner_;
  std::unique_ptr<tree::Link> link_;
  std::unique_ptr<tree::ConnectingHandshake> handshake_;  // until it is proven
  uint32_t index_ = tree::kHeadIndex;                     // of the last one
  Nanos heard_ = 0;                                       // monotonic
  bool asked_ = false;                                    // and no answer yet
  uint32_t failed_ = 0;
  uint64_t sent_before_ = 0;
};

}  // namespace sonde::node
