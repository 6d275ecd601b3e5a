#include "daemon/tree/children.h"

#include <fmt/format.h>

#include "core/time.h"
#include "series/schema.h"

namespace sonde::tree {

void Children::Add(Link& link, uint32_t index) { children_[&link].index = index; }

void Children::Remove(Link& link) {
  const auto at = children_.find(&link);
  if (at == children_.end()) return;
  StartHandOver(at->second);
  children_.erase(at);
  std::erase_if(routes_, [&](const auto& route) { return route.second == &link; });
  queries_.OnGone(link);
}

bool Children::Lose(uint32_t index) {
  std::vector<Link*> links;
  for (const auto& [link, child] : children_) {
    if (child.index == index) links.push_back(link);
  }
  for (Link* link : links) Remove(*link);
  const auto left = leaving_.extract(index);
  return !left.empty() && merger_.Remove(left.mapped(), true);
}

void Children::StartHandOver(Child& child) {
  const TickMerger::Id contributor = std::exchange(child.contributor, 0);
  if (contributor == 0) return;
  merger_.Leave(contributor, Clock::System().Now() + hand_over_);
  leaving_[child.index] = contributor;
}

Status Children::OnMessage(Link& link, Type type, std::string_view payload) {
  const auto at = children_.find(&link);
  if (at == children_.end()) return {Code::kInternal, "message of an unknown child"};
  switch (type) {
    case Type::kSchema:
      return OnSchema(at->second, payload);
    case Type::kFrame:
      return OnFrame(link, at->second, payload);
    case Type::kBlock:
      return OnBlockMessage(link, payload);
    case Type::kMoments:
      return OnMomentsMessage(link, at->second.index, payload);
    case Type::kLeave:
      StartHandOver(at->second);
      return {};
    case Type::kReply: {
      ReplyMessage reply;
      SONDE_RETURN_IF_ERROR(Decode(payload, reply));
      queries_.OnReply(link, reply);
      return {};
    }
    default:
      return {Code::kCorrupt, fmt::format("unexpected message of type {}", static_cast<int>(type))};
  }
}

Status Children::OnSchema(Child& child, std::string_view payload) {
  const Result<Schema::Ptr> schema = schemas_.Decode(payload);
  if (!schema.ok()) return schema.status();
  if (child.contributor == 0) {
    // One that comes back over another link is the same contributor: the ticks that waited for it
    // still do.
    const auto left = leaving_.extract(child.index);
    const bool back = !left.empty() && merger_.Leave(left.mapped(), 0);
    child.contributor = back ? left.mapped() : merger_.AddContributor(Clock::System().Now());
  }
  child.decoder.Reset((*schema)->size());
  merger_.SetSchema(child.contributor, *schema);
  return {};
}

Status Children::OnFrame(Link& link, Child& child, std::string_view payload) {
  if (child.contributor == 0) return {Code::kCorrupt, "frame without a schema"};
  const Result<const Frame*> frame = child.decoder.Decode(payload);
  if (!frame.ok()) return frame.status();
  merger_.Add(child.contributor, **frame);
  if ((*frame)->final) {
    child.contributor = 0;
    Send(link, Type::kFrameAck, "");
  }
  return {};
}

Status Children::OnBlockMessage(Link& link, std::string_view payload) {
  BlockMessage block;
  SONDE_RETURN_IF_ERROR(Decode(payload, block));
  routes_[block.node] = &link;
  on_block_(std::move(block));
  return {};
}

Status Children::OnMomentsMessage(Link& link, uint32_t index, std::string_view payload) {
  MomentsMessage message;
  SONDE_RETURN_IF_ERROR(Decode(payload, message));
  if (seen_[index].Add(message.sequence)) on_moments_(std::move(message.moments));
  Send(link, Type::kMomentsAck, Encode(MomentsAck{message.sequence}));
  return {};
}

std::vector<Link*> Children::Active() const {
  std::vector<Link*> active;
  for (const auto& [link, child] : children_) {
    if (child.contributor != 0) active.push_back(link);
  }
  return active;
}

void Children::SendLeave() {
  for (const auto& [link, child] : children_) Send(*link, Type::kLeave, "");
}

void Children::SendBlockAck(const BlockAck& ack) {
  const auto at = routes_.find(ack.node);
  if (at != routes_.end()) Send(*at->second, Type::kBlockAck, Encode(ack));
}

}  // namespace sonde::tree
