// A link between two parts of one process: the head and the node daemon of a step without srun.
//
// Messages go through the loop, so a handler is never called from within Send. The two ends may be
// destroyed in any order; destroying one closes the other once it has taken what was sent to it.
//
// Thread safety: the loop's thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/link/link.h"
#include "daemon/loop.h"

namespace sonde::tree {

class LocalLink final : public Link {
 public:
  using Ends = std::pair<std::unique_ptr<LocalLink>, std::unique_ptr<LocalLink>>;

  // The names are what the other end calls its peer.
  static Ends MakePair(Loop& loop, std::string first_name, std::string second_name);
  ~LocalLink() override;

  Status Send(uint8_t type, std::string_view payload) override;
  void CloseWhenSent() override;
  size_t queued() const override;
  void SetMaxMessage(size_t bytes) override { max_message_ = bytes; }
  std::string peer() const override;

 private:
  struct Inbox;

  LocalLink(Loop& loop, std::shared_ptr<Inbox> in, std::shared_ptr<Inbox> out);
  static void PostDelivery(Loop& loop, const std::shared_ptr<Inbox>& inbox);
  static void Deliver(const std::shared_ptr<Inbox>& inbox);
  void Take(const std::string& message);
  void Close(const Status& why);
  // Tells the peer that nothing more comes.
  void EndOutput();

  Loop& loop_;
  std::shared_ptr<Inbox> in_;
  std::shared_ptr<Inbox> out_;
  size_t max_message_ = kMaxUnprovenMessage;
  bool open_ = true;
  bool closing_ = false;  // CloseWhenSent was called
};

}  // namespace sonde::tree
