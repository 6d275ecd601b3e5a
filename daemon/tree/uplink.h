// A node's way up: frames and moments over one link at a time. Blocks have a class of their own,
// BlockSender.
//
// At first that is the control connection to the head; once the fabric is up it is the link to the
// parent; and the control connection again when that is lost. Frames are not kept: a tick lost with
// a link is counted as missing.
//
// Thread safety: the loop's thread only. Links belong to the caller.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "daemon/tree/frame.h"
#include "daemon/tree/link.h"
#include "daemon/tree/message.h"
#include "daemon/tree/moments_delivery.h"
#include "series/schema.h"

namespace sonde::tree {

class Uplink {
 public:
  // Takes this link from now on and tells the former one; nullptr: none for now.
  void Use(Link* link, bool tell_former);
  Link* link() const { return link_; }
  // Before the owner destroys a link that was once used.
  void Forget(const Link* link);

  // The series of the frames that follow.
  void SetSchema(Schema::Ptr schema);
  void SendFrame(const Frame& frame);
  // They go up before the next frame.
  void AddMoments(collect::Moments moments) { moments_.Add(std::move(moments)); }
  void OnMomentsAck(std::string_view payload);
  bool moments_delivered() const { return moments_.delivered(); }

 private:
  void SendSchema();

  Link* link_ = nullptr;
  Schema::Ptr schema_;
  FrameEncoder encoder_;
  MomentsSender moments_;
  std::string buffer_;
};

}  // namespace sonde::tree
