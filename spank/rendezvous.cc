#include "spank/rendezvous.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "core/text/port_range.h"
#include "launcher/high_descriptor.h"
#include "launcher/site/munge.h"

namespace sonde::spank {
namespace {

// Every node of the step may connect in the same moment; the kernel cuts it to net.core.somaxconn.
constexpr int kBacklog = 4096;
constexpr size_t kPortDigits = 5;
// A credential of munge's for a key has some 230 bytes, more with a realm or a longer digest.
constexpr size_t kTextSize = 512;

bool IsKey(std::string_view text) {
  return text.size() == kKeyDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct BindAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  // It lies at the same place in both families.
  in_port_t& port() { return reinterpret_cast<sockaddr_in*>(&storage)->sin_port; }
};

BindAddress AllAddresses(sa_family_t family) {
  BindAddress address;
  address.storage.ss_family = family;  // the rest is zero, which is any address
  address.size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return address;
}

// The one to which Slurm binds with NoInAddrAny.
Result<BindAddress> AddressOfHost(const launch::SlurmNetwork& network) {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  addrinfo hints{};
  hints.ai_family = !network.ipv6 ? AF_INET : network.ipv4 ? AF_UNSPEC : AF_INET6;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_PASSIVE;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(name, nullptr, &hints, &list);
  if (error != 0) {
    return Status(Code::kNotFound,
                  "resolve '" + std::string(name) +
                      "', where CommunicationParameters=NoInAddrAny has srun listen: " +
                      ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  BindAddress address;
  address.size = list->ai_addrlen;
  std::memcpy(&address.storage, list->ai_addr, list->ai_addrlen);
  return address;
}

// Tries one port; 0 is any. The error, 0 if it listens.
int TryToListen(BindAddress address, bool ipv4, uint16_t port, Listener& listener) {
  UniqueFd& fd = listener.fd;
  fd.Reset(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  const int on = 1;
  // A port of a step that has just ended may be used again at once.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.storage.ss_family == AF_INET6) {
    const int only = ipv4 ? 0 : 1;
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
  }
  address.port() = htons(port);
  if (::bind(fd.get(), address.get(), address.size) != 0 || ::listen(fd.get(), kBacklog) != 0 ||
      ::getsockname(fd.get(), address.get(), &address.size) != 0) {
    return errno;
  }
  listener.port = ntohs(address.port());
  return 0;
}

// A name or a number; root's without asking a name service.
Result<uid_t> UserId(const std::string& user) {
  if (user == "root") return uid_t{0};
  uid_t number = 0;
  const char* const end = user.data() + user.size();
  const auto [read, error] = std::from_chars(user.data(), end, number);
  if (error == std::errc() && read == end) return number;
  const passwd* entry = ::getpwnam(user.c_str());
  if (entry != nullptr) return entry->pw_uid;
  return Status(Code::kNotFound, "there is no user '" + user + "' here");
}

// Whether the kernel has IPv6 at all.
bool HasIpv6() { return UniqueFd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)).get() >= 0; }

}  // namespace

Result<Listener> Listen(const launch::SlurmNetwork& network, std::optional<PortRange> ports) {
  BindAddress address;
  if (network.all_addresses) {
    const bool v6 = network.ipv6 && (!network.ipv4 || HasIpv6());
    address = AllAddresses(v6 ? AF_INET6 : AF_INET);
  } else {
    Result<BindAddress> own = AddressOfHost(network);
    if (!own.ok()) return own.status();
    address = *own;
  }
  Listener listener;
  int error = 0;
  TryPorts(ports.value_or(PortRange(0, 0)), [&](uint16_t port) {
    error = TryToListen(address, network.ipv4, port, listener);
    return error != EADDRINUSE;
  });
  if (error == EADDRINUSE && ports) return Status(Code::kUnavailable, NoFreePort(*ports));
  if (error != 0) return SystemError("listen for the nodes", error);
  launch::MoveUp(listener.fd);
  return listener;
}

std::optional<PortRange> AllowedPorts(const PluginConfig& config,
                                      const launch::SlurmNetwork& network) {
  return config.port_range.empty() ? network.srun_ports : ParsePortRange(config.port_range);
}

std::optional<Rendezvous> ParseRendezvous(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  Rendezvous rendezvous;
  const char* const end = text.data() + text.size();
  const auto [colon, error] = std::from_chars(text.data(), end, rendezvous.port);
  if (error != std::errc() || colon == end || *colon != ':' || rendezvous.port == 0) {
    return std::nullopt;
  }
  const std::string_view key(colon + 1, static_cast<size_t>(end - colon - 1));
  if (!IsKey(key) && !key.starts_with(launch::Munge::kBegins)) return std::nullopt;
  rendezvous.key = key;
  return rendezvous;
}

std::string RendezvousText(const Rendezvous& rendezvous) {
  const std::string port = std::to_string(rendezvous.port);
  std::string text = std::string(kPortDigits - port.size(), '0') + port + ":" + rendezvous.key;
  text.resize(std::max(text.size(), kTextSize), ' ');
  return text;
}

std::string NoRendezvous() { return RendezvousText({0, std::string(kKeyDigits, '0')}); }

Result<std::string> WrapKey(const std::string& key, const launch::SlurmNetwork& network) {
  const std::optional<launch::Munge> munge = launch::Munge::Find();
  if (!munge) return key;
  const Result<uid_t> reader = UserId(network.slurmd_user);
  if (!reader.ok()) return reader.status().Within("SlurmdUser of slurm.conf");
  return munge->Wrap(key, network.munge_socket, *reader);
}

Result<std::string> OpenKey(const std::string& wrapped, const launch::Environment& environment) {
  if (IsKey(wrapped)) return wrapped;
  const std::optional<launch::Munge> munge = launch::Munge::Find();
  if (!munge) {
    return Status(Code::kUnavailable,
                  "srun's Slurm wraps the step's key by munge, which this node's does not use");
  }
  Result<std::string> key =
      munge->Open(wrapped, launch::ReadSlurmNetwork(environment).munge_socket);
  if (!key.ok()) return key.status().Within("open the step's key");
  if (!IsKey(*key)) return Status(Code::kCorrupt, "srun has wrapped something that is no key");
  return key;
}

}  // namespace sonde::spank
