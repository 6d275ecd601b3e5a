// A process that may break libsonde's layout, and a daemon's reader that must not mind.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/app/app.h"
#include "sonde.h"

namespace sonde::collect {

// A process that does everything right unless told otherwise; lives in the test's own process.
class Attacker {
 public:
  explicit Attacker(size_t size = client::kSegmentSize, int seals = F_SEAL_SHRINK | F_SEAL_GROW)
      : memory_(memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (ftruncate(memory_.get(), static_cast<off_t>(size)) != 0) abort();
    if (seals != 0 && fcntl(memory_.get(), F_ADD_SEALS, seals) != 0) abort();
    base_ = static_cast<char*>(
        mmap(nullptr, client::kSegmentSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0));
    if (size < client::kSegmentSize) return;
    header()->magic = client::kMagic;
    header()->version = client::kVersion;
  }
  ~Attacker() { munmap(base_, client::kSegmentSize); }
  Attacker(const Attacker&) = delete;
  Attacker& operator=(const Attacker&) = delete;

  client::Header* header() { return reinterpret_cast<client::Header*>(base_); }
  char* records() { return base_ + client::kRecordsOffset; }
  client::Count* counts() {
    return reinterpret_cast<client::Count*>(base_ + client::kShardsOffset);
  }
  uint16_t* owners() { return reinterpret_cast<uint16_t*>(base_ + client::kOwnersOffset); }
  client::Distribution& distribution(size_t index) {
    return *reinterpret_cast<client::Distribution*>(base_ + client::kDistributionsOffset +
                                                    index * client::kDistributionSize);
  }
  client::Moment& moment(size_t index) {
    return reinterpret_cast<client::Moment*>(base_ + client::kMomentsOffset)[index];
  }
  client::PastValue& past_value(size_t index) {
    return reinterpret_cast<client::PastValue*>(base_ + client::kPastOffset)[index];
  }
  const char* base() const { return base_; }
  int memory() const { return memory_.get(); }
  client::Hello hello = {client::kMagic, client::kVersion, 1, 0, 0, client::kSegmentSize};

  // Appends a record with a name; `change` may spoil it.
  void Publish(const std::string& name,
               const std::function<void(client::Record&)>& change = nullptr) {
    client::Record record = {};
    record.size = static_cast<uint32_t>((sizeof(record) + name.size() + 7) / 8 * 8);
    record.type = static_cast<uint8_t>(MetricType::kCounter);
    record.level = 1;
    record.slots = 1;
    record.name_size = static_cast<uint16_t>(name.size());
    if (change) change(record);
    char* at = records() + end_;
    memcpy(at + sizeof(record), name.data(), name.size());
    memcpy(at, &record, sizeof(record));
    end_ += (sizeof(record) + name.size() + 7) / 8 * 8;
    header()->records_end = end_;
  }

  void Connect(const std::string& socket_name) {
    connection_ = UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, socket_name.data(), socket_name.size());
    const auto length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socket_name.size());
    ASSERT_EQ(connect(connection_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  }
  void Send(std::string_view packet, const std::vector<int>& descriptors) {
    iovec data = {const_cast<char*>(packet.data()), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(sendmsg(connection_.get(), &message, MSG_NOSIGNAL),
              static_cast<ssize_t>(packet.size()));
  }
  void SendHello() {
    Send(std::string_view(reinterpret_cast<char*>(&hello), sizeof(hello)), {memory()});
  }

 private:
  UniqueFd memory_;
  UniqueFd connection_;
  char* base_;
  size_t end_ = 0;
};

class HostileTest : public testing::Test {
 protected:
  HostileTest() {
    options_.socket = "sonde-hostile-" + std::to_string(getpid());
    options_.uid = geteuid();
  }
  void Start() {
    auto source = AppSource::Open(options_);
    ASSERT_TRUE(source.ok()) << source.status().message();
    source_ = std::move(source).value();
  }
  void Tick() { source_->Sample(now_ += kSecond); }
  bool Has(const std::string& name) const {
    for (const Series& series : source_->series()) {
      if (series.metric.name == name) return true;
    }
    return false;
  }

  AppSource::Options options_;
  std::unique_ptr<AppSource> source_;
  Nanos now_ = 1'000 * kSecond;
};

}  // namespace sonde::collect
