#include "daemon/tree/query_fanout.h"

#include <algorithm>
#include <iterator>

namespace sonde::tree {

QueryFanout::~QueryFanout() {
  for (const auto& [id, open] : open_) loop_.Cancel(open.timer);
}

void QueryFanout::Ask(const QueryMessage& query, const std::vector<Link*>& children,
                      std::string own, Nanos timeout, Done done) {
  if (open_.size() >= kMaxOpen || open_.contains(query.id)) {
    done(ReplyMessage{query.id, 0, {}});
    return;
  }
  Open& open = open_[query.id];
  open.reply.id = query.id;
  open.done = std::move(done);
  if (!own.empty()) {
    open.reply.nodes = 1;
    open.reply.parts.push_back(std::move(own));
  }
  const std::string bytes = Encode(query);
  for (Link* child : children) {
    if (Send(*child, Type::kQuery, bytes)) open.waiting.push_back(child);
  }
  if (open.waiting.empty()) return Finish(query.id);
  open.timer = loop_.After(timeout, [this, id = query.id] { Finish(id); });
}

void QueryFanout::OnReply(const Link& from, ReplyMessage reply) {
  const auto at = open_.find(reply.id);
  if (at == open_.end() || std::erase(at->second.waiting, &from) == 0) return;
  ReplyMessage& all = at->second.reply;
  all.nodes += reply.nodes;
  std::move(reply.parts.begin(), reply.parts.end(), std::back_inserter(all.parts));
  if (at->second.waiting.empty()) Finish(reply.id);
}

void QueryFanout::OnGone(const Link& child) {
  std::vector<uint64_t> complete;
  for (auto& [id, open] : open_) {
    if (std::erase(open.waiting, &child) != 0 && open.waiting.empty()) complete.push_back(id);
  }
  for (const uint64_t id : complete) Finish(id);
}

void QueryFanout::Finish(uint64_t id) {
  const auto at = open_.find(id);
  if (at == open_.end()) return;
  Open open = std::move(at->second);
  open_.erase(at);
  loop_.Cancel(open.timer);
  open.done(std::move(open.reply));
}

}  // namespace sonde::tree
