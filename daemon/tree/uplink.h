// A node's way up: frames and moments over one link at a time. Blocks go by BlockSender.
//
// At first that is the control connection to the head; once the fabric is up it is the link to the
// parent; and the control connection again when that is lost. Data that the head has not
// acknowledged is kept and is sent again over a new link: frames, of which a receiver drops those
// that came before, and moments. Frames that the head has are kept, if it says so, until they are
// safe as well, and are sent again to another head.
//
// The receiver of a link stands in for a node that it loses, and so has to know all that the node
// counted, also what is not sampled at every tick. A stream over a new link says that only when it
// is sampled again. So the node first says what the link before knew: as last values of its own
// that are `lost`, and that count until its next sample.
//
// Nothing here waits. While the link does not take more, frames stay where they are kept; when
// there are too many, every second one is left out, and counted: a slow parent gets less detail.
//
// Thread safety: the loop's thread only. Links belong to the caller.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/link/link.h"
#include "daemon/message/message.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/frame_window.h"
#include "daemon/tree/last_known.h"
#include "daemon/tree/moments_delivery.h"
#include "series/block/schema.h"

namespace sonde::tree {

class Uplink {
 public:
  // With more than this waiting in the link, frames are held back.
  static constexpr size_t kSlowLink = 1u << 20;
  // Or with this, as often as kSlowFlushes in a row: the link takes less than comes.
  static constexpr size_t kBacklog = 16u << 10;
  static constexpr int kSlowFlushes = 3;
  // So many frames, or so many bytes, may be held back; then every second one goes. That is half of
  // what is kept: the other half is for those under way, which may have to go once more.
  static constexpr size_t kMaxHeldBack = 32;
  static constexpr size_t kMaxHeldBackBytes = FrameWindow::kBytes / 2;

  // Takes this link from now on and tells the former one; nullptr: none for now.
  void Use(Link* link, bool tell_former);
  Link* link() const { return link_; }
  // Before the owner destroys a link that was once used.
  void Forget(const Link* link);

  // The receiver waits for the frames of a stream from its schema on, so it may go before the
  // first.
  void Announce(Stream stream, const Schema::Ptr& schema);
  bool announced(Stream stream) const {
    return streams_[static_cast<size_t>(stream)].schema != nullptr;
  }
  // Of this stream comes nothing more.
  void End(Stream stream);
  // Takes a frame, to go with the next Flush; gives it a number, in `info`, and returns that.
  uint64_t AddFrame(FrameInfo& info, const Schema::Ptr& schema, const FrameValues& values);
  // Sends moments, then frames.
  void Flush();
  // There are frames that the link has not been given, because it did not take more.
  bool holds_back() const { return link_ != nullptr && encoded_ != number_; }
  // Gives the link as many of these as it takes now: to be called now and then between flushes.
  void Continue();
  // There is no time for those frames any more: last values go next.
  void LeaveOutHeldBack();
  // The number of the last frame.
  uint64_t last_number() const { return number_; }
  void OnAck(uint64_t number, uint64_t safe);
  // The head is another one, which has only what was safe. Before Use.
  void OnNewHead() {
    acked_ = 0;
    moments_.OnNewHead();
  }
  // The parts of this frame come by themselves.
  void OnRefused(uint64_t number) { window_.Remove(number); }
  // The head has all frames.
  bool frames_delivered() const { return window_.CountAfter(acked_) == 0; }
  // That were left out, or had to make room before they were sent, or again; and their samples.
  uint64_t lost_frames() const { return window_.lost(); }
  uint64_t lost_samples() const { return window_.lost_samples(); }

  // Frames are held back.
  bool slow() const {
    return link_ == nullptr || link_->queued() > kSlowLink || backlogs_ >= kSlowFlushes;
  }

  // They go up before the next frame.
  void AddMoments(collect::Moments moments) { moments_.Add(std::move(moments)); }
  void OnMomentsAck(std::string_view payload);
  bool moments_delivered() const { return moments_.delivered(); }

 private:
  struct StreamState {
    Schema::Ptr schema;  // newest announced
    Schema::Ptr told;    // what the link knows; nullptr: nothing
    Schema::Ptr coded;   // the encoder's; nullptr: it was never used
    FrameEncoder encoder;
  };

  StreamState& Of(Stream stream) { return streams_[static_cast<size_t>(stream)]; }
  void Tell(Stream stream, const Schema::Ptr& schema);
  void TellKnown();
  void Append(const FrameInfo& info, const Schema::Ptr& schema, const FrameValues& values);
  void EndStreams();
  void SendOut();
  void StartOver();
  void CatchUp();
  bool holds_too_much() const;

  Link* link_ = nullptr;
  std::array<StreamState, kStreams> streams_;
  FrameWindow window_;
  int backlogs_ = 0;  // flushes in a row
  uint64_t number_ = 0;
  uint64_t encoded_ = 0;  // frames up to this one were given to the link, or are in `out_`
  uint64_t acked_ = 0;    // frames up to this one the head has
  std::string out_;       // frames for the link, each behind its length
  std::string one_;
  LastKnown known_;     // of the own frames, before the schema that the link knows
  Nanos own_tick_ = 0;  // of the newest own frame
  NodeSet own_node_;
  Schema::Ptr packed_;  // the last one told, and as it goes over a link
  std::string packed_bytes_;
  MomentsSender moments_;
};

}  // namespace sonde::tree
