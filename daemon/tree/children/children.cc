#include "daemon/tree/children/children.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/time.h"
#include "daemon/link/send.h"
#include "daemon/tree/blocks/block_joiner.h"

namespace sonde::tree {

void Children::Add(Link& link, uint32_t index) {
  Child& child =
      children_.try_emplace(&link, link, index, acknowledgements_.Add(link)).first->second;
  child.heard = Clock::System().Monotonic();
}

void Children::Remove(Link& link) {
  const auto at = children_.find(&link);
  if (at == children_.end()) return;
  Child& child = at->second;
  frames_.Remove(child.sender);
  block_routes_.Remove(child.blocks);
  acknowledgements_.Remove(child.account);
  children_.erase(at);
  queries_.OnGone(link);
}

Status Children::OnMessage(Link& link, Type type, std::string_view payload) {
  const auto at = children_.find(&link);
  if (at == children_.end()) return {Code::kInternal, "message of an unknown child"};
  Child& child = at->second;
  child.heard = Clock::System().Monotonic();
  switch (type) {
    case Type::kSchema:
      return frames_.OnSchema(child.sender, payload);
    case Type::kFrame:
      return frames_.OnFrames(child.sender, payload);
    case Type::kStreamEnd:
      return frames_.OnStreamEnd(child.sender, payload);
    case Type::kBlock:
      return OnBlockMessage(child, payload);
    case Type::kJoinedBlocks:
      return OnJoinedBlocks(child, payload);
    case Type::kMoments:
      return moments_.OnMessage(link, child.index, payload, [this](collect::Moments moments) {
        unknown_moments_ += std::erase_if(moments.annotations, [this](const Annotation& one) {
          return one.node >= frames_.node_limit() && one.node != sonde::Owner::kNobody;
        });
        owner_.OnMoments(std::move(moments));
      });
    case Type::kLeave:
      frames_.OnHandOver(child.sender);
      return {};
    case Type::kAnswered:
    case Type::kReply:
      return queries_.OnMessage(link, type, payload);
    default:
      log::Debug("message of type {} ignored", static_cast<int>(type));  // of a later release
      return {};
  }
}

// Of a node that has yet to come, to an acting head, it comes again.
void Children::TakeBlock(Child& child, BlockMessage block) {
  if (block.node >= frames_.node_limit()) {
    ++unknown_blocks_;
    return;
  }
  block_routes_.OnBlock(block.node, child.blocks);
  owner_.OnBlock(std::move(block));
}

Status Children::OnBlockMessage(Child& child, std::string_view payload) {
  const Status status = DecodeEach<BlockMessage>(
      payload, [&](BlockMessage block) { TakeBlock(child, std::move(block)); });
  FlushBlockAcks();  // what was answered at once
  return status;
}

Status Children::OnJoinedBlocks(Child& child, std::string_view payload) {
  const auto joined = ReadJoined(payload);
  // Of a later version, for which nobody has asked. The link stays, for its frames are good.
  if (joined.status().code() == Code::kUnsupported) {
    if (unread_joined_++ == 0) {
      log::Warning("child {}: {}", child.sender.link.peer(), joined.status().message());
    }
    return {};
  }
  if (!joined.ok()) return joined.status();
  const auto is_known = [this](const JoinedEntry& one) { return one.node < frames_.node_limit(); };
  if (!std::all_of(joined->entries.begin(), joined->entries.end(), is_known)) {
    // The sender may be honest, and have joined what one of its children says.
    for (BlockMessage& block : TakeApart(*joined)) TakeBlock(child, std::move(block));
    FlushBlockAcks();
    return {};
  }
  for (const JoinedEntry& entry : joined->entries) block_routes_.OnBlock(entry.node, child.blocks);
  owner_.OnJoinedBlocks(*joined, payload);
  FlushBlockAcks();
  return {};
}

std::vector<Link*> Children::Active() const {
  std::vector<Link*> active;
  active.reserve(frames_.contributing().size());
  for (const FrameIntake::Sender* sender : frames_.contributing()) active.push_back(&sender->link);
  return active;
}

bool Children::done() const {
  return std::none_of(children_.begin(), children_.end(), [this](const auto& entry) {
    const Child& child = entry.second;
    return child.sender.contributes() || acknowledgements_.Awaits(child.account);
  });
}

void Children::SendLeave() {
  for (const auto& [link, child] : children_) Send(*link, Type::kLeave, "");
}

void Children::BeginSafe() {
  acknowledgements_.BeginSafe();
  moments_.BeginSafe();
}

void Children::EndSafe() {
  acknowledgements_.EndSafe();
  if (!moments_.has_safe()) return;
  for (const auto& [link, child] : children_) moments_.TellSafe(*link, child.index);
}

void Children::Pulse() {
  block_routes_.SendBeforePulse();
  for (const FrameIntake::Sender* sender : frames_.contributing()) {
    acknowledgements_.Pulse(children_.at(&sender->link).account);
  }
}

std::vector<Link*> Children::SilentSince(Nanos since) const {
  std::vector<Link*> silent;
  for (const FrameIntake::Sender* sender : frames_.contributing()) {
    if (children_.at(&sender->link).heard < since) silent.push_back(&sender->link);
  }
  return silent;
}

}  // namespace sonde::tree
