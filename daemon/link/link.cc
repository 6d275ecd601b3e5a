#include "daemon/link/link.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace sonde::tree {
namespace {

constexpr size_t kKeptCapacity = 64u << 10;

}  // namespace

Status CheckPayload(size_t bytes) {
  if (bytes < kMaxMessage) return {};
  return {Code::kLimit,
          fmt::format("send a message of {} bytes: the limit is {}", bytes + 1, kMaxMessage)};
}

std::array<char, kFrameHeader> FrameHeader(uint8_t type, std::string_view payload) {
  const auto length = static_cast<uint32_t>(payload.size() + 1);
  std::array<char, kFrameHeader> header;
  std::memcpy(header.data(), &length, sizeof length);
  header[4] = static_cast<char>(type);
  return header;
}

void AppendMessage(uint8_t type, std::string_view payload, std::string& out) {
  const auto header = FrameHeader(type, payload);
  out.append(header.data(), header.size());
  out.append(payload);
}

Result<size_t> Deframer::WholeSize(std::string_view start) const {
  uint32_t length = 0;
  std::memcpy(&length, start.data(), sizeof length);
  if (length == 0) return Status(Code::kCorrupt, "a message of length 0");
  if (length > max_message_) {
    return Status(Code::kCorrupt,
                  fmt::format("a message of {} bytes, at most {} are taken", length, max_message_));
  }
  return sizeof length + length;
}

Status Deframer::Feed(std::string_view bytes,
                      const std::function<bool(uint8_t type, std::string_view payload)>& f) {
  while (!bytes.empty()) {
    // Straight from the caller's bytes where a message lies whole in them, else collected.
    const size_t held = pending_.size();
    const bool collect = held != 0 || bytes.size() < kFrameHeader;
    if (collect && held < kFrameHeader) {
      const size_t n = std::min(bytes.size(), kFrameHeader - held);
      pending_.append(bytes.substr(0, n));
      bytes.remove_prefix(n);
      if (pending_.size() < kFrameHeader) return {};
    }
    const auto size = WholeSize(collect ? std::string_view(pending_) : bytes);
    if (!size.ok()) return size.status();
    const size_t missing = *size - pending_.size();
    if (bytes.size() < missing) {
      pending_.append(bytes);
      return {};
    }
    // While `f` runs the message is ours: it may destroy this.
    std::string collected;
    std::string_view whole = bytes.substr(0, missing);
    if (collect) {
      collected = std::move(pending_);
      collected.append(whole);
      whole = collected;
    }
    bytes.remove_prefix(missing);
    if (!f(static_cast<uint8_t>(whole[4]), whole.substr(kFrameHeader))) return {};
    if (collect && collected.capacity() <= kKeptCapacity) {
      collected.clear();
      pending_ = std::move(collected);
    } else {
      pending_.clear();
    }
  }
  return {};
}

void DestroyLater(Loop& loop, std::unique_ptr<Link> link) {
  if (link == nullptr) return;
  link->SetHandler({});
  loop.Post([keep = std::shared_ptr<Link>(std::move(link))] {});
}

}  // namespace sonde::tree
