// A link whose messages nobody between its two ends can read, change or invent.
//
// It stands over a link of whichever carrier, which sees messages of type kSealed only, and is as
// that in everything else: what waits, what is too long, how it ends. A message that is not the
// next one of the peer closes it. The link holds no buffer: a message is sealed and opened on the
// stack, a long one in memory of its own.
//
// Thread safety: as Link.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "daemon/link/link.h"
#include "daemon/link/trust/seal.h"

namespace sonde::tree {

class SealedLink final : public Link {
 public:
  // `carrier` is open or about to be. Its handler is this link's from now on.
  SealedLink(std::unique_ptr<Link> carrier, LinkSeals seals);

  Status Send(uint8_t type, std::string_view payload) override;
  void ExpectMore() override;
  void CloseWhenSent() override;
  size_t queued() const override;
  void SetMaxMessage(size_t bytes) override;
  std::string peer() const override;
  uint64_t bytes_sent() const override;
  uint64_t bytes_received() const override;

 private:
  void OnMessage(uint8_t type, std::string_view payload);
  void OnClosed(const Status& why);
  // Lets go of the carrier, at once.
  void Refuse(std::string_view why);

  std::unique_ptr<Link> carrier_;  // nullptr: refused
  LinkSeals seals_;
  std::string peer_;  // once it is refused
};

}  // namespace sonde::tree
