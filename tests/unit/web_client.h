// A client of the web server's tests: a socket on the loopback, and the server over the tests' data
// source.
//
// Thread safety: one thread for each Client.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "tests/unit/web_fake_source.h"
#include "web/server/server.h"

namespace sonde::web {

inline constexpr int kPatienceMs = 10'000;

// A connection that is closed with the object.
class Client {
 public:
  explicit Client(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(fd_); }

  bool connected() const { return connected_; }
  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  // One response with its body; what follows stays for the next call. "" if the server closed.
  std::string Receive(bool head = false) {
    for (;;) {
      if (const size_t end = buffer_.find("\r\n\r\n"); end != std::string::npos) {
        const size_t at = buffer_.find("Content-Length: ");
        const size_t body =
            head || at > end ? 0 : std::strtoul(buffer_.c_str() + at + 16, nullptr, 10);
        if (buffer_.size() >= end + 4 + body) {
          std::string response = buffer_.substr(0, end + 4 + body);
          buffer_.erase(0, response.size());
          return response;
        }
      }
      if (!Fill()) return {};
    }
  }
  // What comes up to `end`, with it; what follows stays. "" if the server closed.
  std::string ReceiveTo(std::string_view end) {
    for (;;) {
      if (const size_t at = buffer_.find(end); at != std::string::npos) {
        std::string text = buffer_.substr(0, at + end.size());
        buffer_.erase(0, text.size());
        return text;
      }
      if (!Fill()) return {};
    }
  }
  // The body of an answer that comes in chunks; its header was received.
  std::string ReceiveChunks() {
    std::string body;
    for (;;) {
      const std::string size = ReceiveTo("\r\n");
      const size_t bytes = std::strtoul(size.c_str(), nullptr, 16);
      while (buffer_.size() < bytes + 2) {
        if (!Fill()) return body + " and no more";
      }
      body.append(buffer_, 0, bytes);
      buffer_.erase(0, bytes + 2);
      if (bytes == 0) return body;
    }
  }
  // Small, so that a reader who does not read is noticed soon.
  void ShrinkReceiveBuffer() {
    const int bytes = 32768;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
  }
  // Whether the server closes the connection, whatever it sends before.
  bool SeesClose() {
    while (Fill()) {
    }
    return closed_;
  }

 private:
  bool Fill() {
    pollfd ready{fd_, POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) != 1) return false;
    char bytes[16384];
    const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
    if (n <= 0) {
      closed_ = true;
      return false;
    }
    buffer_.append(bytes, static_cast<size_t>(n));
    return true;
  }

  int fd_;
  bool connected_ = false;
  bool closed_ = false;
  std::string buffer_;
};

inline std::string Get(std::string_view target, std::string_view more = "") {
  return "GET " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n" + std::string(more) +
         "\r\n";
}

inline std::string Post(std::string_view target, std::string_view body) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: "
         "application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

inline constexpr std::string_view kQuery =
    R"({"start":"1h-ago","queries":[{"metric":"node_load1","aggregator":"sum"}]})";

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.port = 0;
    options_.token = "secret";
  }
  void Start() {
    Result<std::unique_ptr<Server>> server = Server::Start(options_, source_);
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
  }
  std::string Exchange(std::string_view request) {
    Client client(server_->port());
    client.Send(request);
    return client.Receive();
  }

  Server::Options options_;
  std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>(Clock::System().Now());
  std::unique_ptr<Server> server_;
};

}  // namespace sonde::web
