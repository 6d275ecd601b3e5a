// Both ends of a node's connection to a head in the same process: what one says the other hears at
// once.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "daemon/link/link.h"
#include "daemon/message/message.h"

namespace sonde::head {

// The head's end; it is the head's. What the head says to the node is dropped.
class HeadEnd : public tree::Link {
 public:
  Status Send(uint8_t, std::string_view) override { return {}; }
  void CloseWhenSent() override {}
  size_t queued() const override { return 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "node"; }

  // From the node.
  void Hear(tree::Type type, std::string_view payload) {
    const auto handler = handler_;  // which may replace itself
    handler->message(static_cast<uint8_t>(type), payload);
  }
  void Break(const Status& why = {Code::kUnavailable, "connection reset"}) {
    const auto handler = handler_;
    handler->closed(why);
  }
};

class NodeEnd final : public tree::Link {
 public:
  explicit NodeEnd(HeadEnd& head) : head_(head) {}
  Status Send(uint8_t type, std::string_view payload) override {
    head_.Hear(static_cast<tree::Type>(type), payload);
    return {};
  }
  void CloseWhenSent() override {}
  size_t queued() const override { return 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "head"; }

 private:
  HeadEnd& head_;
};

}  // namespace sonde::head
