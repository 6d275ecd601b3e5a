#include "daemon/link/address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>

namespace sonde::tree {
namespace {

template <typename Call>
Address Ask(Call call, int fd) {
  Address address;
  address.length = sizeof address.storage;
  if (call(fd, address.get(), &address.length) != 0) return {};
  return address;
}

}  // namespace

Address LocalAddress(int fd) { return Ask(getsockname, fd); }
Address PeerAddress(int fd) { return Ask(getpeername, fd); }

std::string HostPortText(const std::string& host, uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

// It lies at the same place in both families.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

uint16_t PortOf(const Address& address) {
  sockaddr_in v4;
  std::memcpy(&v4, &address.storage, sizeof v4);
  const bool known = v4.sin_family == AF_INET || v4.sin_family == AF_INET6;
  return known ? ntohs(v4.sin_port) : 0;
}

void SetPort(Address& address, uint16_t port) {
  sockaddr_in v4;
  std::memcpy(&v4, &address.storage, sizeof v4);
  if (v4.sin_family != AF_INET && v4.sin_family != AF_INET6) return;
  v4.sin_port = htons(port);
  std::memcpy(&address.storage, &v4, sizeof v4);
}

std::string HostText(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address.storage, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  } else if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address.storage, sizeof v6);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    }
  }
  return text;
}

std::string AddressText(const Address& address) {
  // The port lies at the same place in both.
  sockaddr_in any;
  std::memcpy(&any, &address.storage, sizeof any);
  const std::string host = HostText(address);
  return host.empty() ? "?" : HostPortText(host, ntohs(any.sin_port));
}

std::string NetworkOf(const std::string& host) {
  constexpr size_t kPrefix = 8;
  const size_t begin = host.starts_with('[') ? 1 : 0;
  const std::string text = host.substr(begin, host.find_first_of("]%", begin) - begin);
  in6_addr address{};
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1) return host;
  return {reinterpret_cast<const char*>(address.s6_addr), kPrefix};
}

PortRange PortsOf(std::string_view range) {
  return ParsePortRange(range).value_or(PortRange{0, 0});
}

std::vector<std::string> AddressesOf(const std::string& interface) {
  std::vector<std::string> v4;
  std::vector<std::string> v6;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return v4;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (interface != at->ifa_name || at->ifa_addr == nullptr) continue;
    const sa_family_t family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Address address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, at->ifa_addr, address.length);
    (family == AF_INET ? v4 : v6).push_back(HostText(address));
  }
  v4.insert(v4.end(), v6.begin(), v6.end());
  return v4;
}

Result<std::vector<Address>> Resolve(const std::string& host, uint16_t port, bool numeric_only) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (numeric_only ? AI_NUMERICHOST : 0);
  addrinfo* list = nullptr;
  const int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (rc != 0) {
    return Status(Code::kNotFound, fmt::format("resolve host '{}': {}", host, gai_strerror(rc)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    if (at->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address address;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.length = at->ai_addrlen;
    addresses.push_back(address);
  }
  return addresses;
}

}  // namespace sonde::tree
