// A link whose messages lie in a queue until a test takes them out.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/link/link.h"
#include "daemon/message/message.h"

namespace sonde::tree {

class QueueLink : public Link {
 public:
  Status Send(uint8_t type, std::string_view payload) override {
    queue.emplace_back(static_cast<Type>(type), payload);
    return {};
  }
  void CloseWhenSent() override {}
  size_t queued() const override { return 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "peer"; }

  std::deque<std::pair<Type, std::string>> queue;
};

}  // namespace sonde::tree
