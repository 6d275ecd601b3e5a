// A socket that listens on 127.0.0.1.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "core/unique_fd.h"

namespace sonde {

struct LoopbackListener {
  explicit LoopbackListener(int backlog) : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd.get(), raw, size), 0);
    EXPECT_EQ(listen(fd.get(), backlog), 0);
    EXPECT_EQ(getsockname(fd.get(), raw, &size), 0);
    port = ntohs(address.sin_port);
  }

  UniqueFd fd;
  uint16_t port = 0;
};

}  // namespace sonde
