// Socket addresses: from text and to text.
//
// Thread safety: functions without state.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/text/settings.h"

namespace sonde::tree {

// An address with its length, as the system calls want it. Of no family when unknown.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  bool known() const { return length != 0; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// What a socket is bound and connected to; unknown if it is not.
Address LocalAddress(int fd);
Address PeerAddress(int fd);

// "10.0.0.7:51234", "[fe80::1]:51234", "?" if unknown. An IPv4 address within IPv6 is written as
// IPv4.
std::string AddressText(const Address& address);
// The host alone, "" if unknown.
std::string HostText(const Address& address);
// 0 if unknown.
uint16_t PortOf(const Address& address);
// Nothing if unknown.
void SetPort(Address& address, uint16_t port);
std::string HostPortText(const std::string& host, uint16_t port);

// The network of a host that Link::peer() names, as far as one stranger may have all its addresses:
// of IPv6 the first 64 bits, else the host itself.
std::string NetworkOf(const std::string& host);

// The first and the last of "60000-60100"; of "" any: 0 and 0.
PortRange PortsOf(std::string_view range);

// The numeric addresses of a network interface of this machine, IPv4 first; none if there is no
// such.
std::vector<std::string> AddressesOf(const std::string& interface);

// The addresses of a host. A numeric address never blocks; `numeric_only` refuses anything else
// with kNotFound. A name asks the system's resolver, which may take as long as it is configured to
// (tens of seconds): not on a loop's thread.
Result<std::vector<Address>> Resolve(const std::string& host, uint16_t port, bool numeric_only);

}  // namespace sonde::tree
