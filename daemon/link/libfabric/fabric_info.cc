#include "daemon/link/libfabric/fabric_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "daemon/link/address.h"
#include "daemon/link/listener.h"
#include "daemon/loop.h"

namespace sonde::tree {
namespace {

// Receives that wait and sends under way at least.
constexpr size_t kRdmQueue = 64;
// Somebody else may take a port that was free when we looked.
constexpr int kListenTries = 4;

FabricInfo MakeHints(const FabricLibrary& library, Endpoint type, const std::string& provider) {
  FabricInfo hints(library.dupinfo(nullptr), {&library});
  if (hints == nullptr) return hints;
  hints->caps = FI_MSG;
  hints->ep_attr->type = type == Endpoint::kRdm ? FI_EP_RDM : FI_EP_MSG;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  if (type == Endpoint::kRdm) {
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->domain_attr->mr_mode |= FI_MR_ENDPOINT;
    hints->tx_attr->size = hints->rx_attr->size = kRdmQueue;
    // We keep the order ourselves, with a window and a sequence number.
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_NONE;
  }
  if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
  return hints;
}

// The provider's own only: "tcp" also begins "tcp;ofi_rxm".
bool IsOf(const fi_info& info, const std::string& provider) {
  return provider == info.fabric_attr->prov_name;
}

// Returns what there is; nullptr if nothing.
FabricInfo Ask(const FabricLibrary& library, Endpoint type, const std::string& provider,
               const std::string& address) {
  FabricInfo info(nullptr, {&library});
  const FabricInfo hints = MakeHints(library, type, provider);
  if (hints == nullptr) return info;
  fi_info* list = nullptr;
  const char* node = address.empty() ? nullptr : address.c_str();
  const uint64_t flags = node == nullptr ? 0 : FI_SOURCE | FI_NUMERICHOST;
  if (library.getinfo(kFabricVersion, node, nullptr, flags, hints.get(), &list) == 0) {
    info.reset(list);
  }
  return info;
}

// Only the first that fits is wanted.
template <typename Fits>
FabricInfo FirstOf(const FabricLibrary& library, const FabricInfo& list, Fits fits) {
  for (const fi_info* at = list.get(); at != nullptr; at = at->next) {
    if (fits(*at)) return FabricInfo(library.dupinfo(at), {&library});
  }
  return FabricInfo(nullptr, {&library});
}

// fi_getinfo takes any address and leaves it to the first connection to fail.
bool IsLocal(const std::string& host) {
  const auto addresses = Resolve(host, 0, true);
  if (!addresses.ok()) return false;
  const Address& address = addresses->front();
  const UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd && bind(fd.get(), address.get(), address.length) == 0;
}

// "mlx5_0" is the domain mlx5_0, and also rdmap0s6 is rdmap0s6-rdm.
bool IsDomain(const fi_info& info, const std::string& name) {
  const std::string_view domain = info.domain_attr->name == nullptr ? "" : info.domain_attr->name;
  return domain.starts_with(name) && (domain.size() == name.size() || domain[name.size()] == '-');
}

std::string DomainsOf(const FabricInfo& list, const std::string& provider) {
  std::vector<std::string> names;
  for (const fi_info* at = list.get(); at != nullptr; at = at->next) {
    const std::string name = at->domain_attr->name == nullptr ? "?" : at->domain_attr->name;
    if (IsOf(*at, provider) && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Unknown if they are those of something else.
Address SocketAddress(uint32_t format, std::string_view bytes) {
  Address address;
  if (!IsSocketFormat(format) || bytes.size() > sizeof address.storage) return address;
  std::memcpy(&address.storage, bytes.data(), bytes.size());
  address.length = static_cast<socklen_t>(bytes.size());
  return address;
}

}  // namespace

std::string_view ToString(Endpoint type) { return type == Endpoint::kRdm ? "RDM" : "MSG"; }

std::vector<ProviderOffer> OfferedProviders(const FabricLibrary& library) {
  std::vector<ProviderOffer> offers;
  for (const Endpoint type : {Endpoint::kMsg, Endpoint::kRdm}) {
    const FabricInfo list = Ask(library, type, "", "");
    for (const fi_info* at = list.get(); at != nullptr; at = at->next) {
      const std::string name = at->fabric_attr->prov_name;
      auto found = std::find_if(offers.begin(), offers.end(),
                                [&](const ProviderOffer& offer) { return offer.name == name; });
      if (found == offers.end()) found = offers.insert(offers.end(), ProviderOffer{.name = name});
      (type == Endpoint::kRdm ? found->rdm : found->msg) = true;
    }
  }
  return offers;
}

Result<FabricInfo> ChooseInfo(const FabricLibrary& library, Endpoint type,
                              const std::string& provider, const FabricOptions& options) {
  const auto own = [&](const fi_info& info) { return IsOf(info, provider); };
  const auto at_address = [&](const std::string& address) {
    return FirstOf(library, Ask(library, type, provider, address), own);
  };
  const FabricInfo any = Ask(library, type, provider, "");
  FabricInfo info = FirstOf(library, any, own);
  if (info == nullptr) {
    return Status(Code::kNotFound,
                  fmt::format("provider '{}' has no {} endpoints here", provider, ToString(type)));
  }
  if (options.interface.empty()) {
    // A provider with addresses of its own, or on other interfaces, chooses itself.
    FabricInfo here(nullptr, {&library});
    if (!options.local_address.empty()) here = at_address(options.local_address);
    return here != nullptr && IsLocal(options.local_address) ? std::move(here) : std::move(info);
  }
  if (Resolve(options.interface, 0, true).ok()) {
    FabricInfo here = IsLocal(options.interface) ? at_address(options.interface)
                                                 : FabricInfo(nullptr, {&library});
    if (here != nullptr) return here;
  }
  for (const std::string& address : AddressesOf(options.interface)) {
    FabricInfo here = at_address(address);
    if (here != nullptr) return here;
  }
  FabricInfo there = FirstOf(library, any, [&](const fi_info& one) {
    return own(one) && IsDomain(one, options.interface);
  });
  if (there != nullptr) return there;
  return Status(Code::kNotFound,
                fmt::format("provider '{}' has no interface '{}', only {}", provider,
                            options.interface, DomainsOf(any, provider)));
}

bool IsSocketFormat(uint32_t format) {
  return format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
}

bool IsAddressFor(const fi_info& info, uint32_t format, std::string_view bytes) {
  if (!IsSocketFormat(format)) {
    const bool known_size = info.src_addrlen == 0 || info.addr_format == FI_ADDR_STR ||
                            bytes.size() == info.src_addrlen;
    return format == info.addr_format && !bytes.empty() && known_size &&
           (format != FI_ADDR_STR || bytes.back() == '\0');
  }
  sa_family_t family = AF_UNSPEC;
  if (!IsSocketFormat(info.addr_format) || bytes.size() < sizeof family) return false;
  std::memcpy(&family, bytes.data(), sizeof family);
  return (family == AF_INET && bytes.size() == sizeof(sockaddr_in)) ||
         (family == AF_INET6 && bytes.size() == sizeof(sockaddr_in6));
}

std::string SocketText(uint32_t format, std::string_view bytes) {
  const Address address = SocketAddress(format, bytes);
  return address.known() ? AddressText(address) : "";
}

uint16_t SocketPort(uint32_t format, std::string_view bytes) {
  return PortOf(SocketAddress(format, bytes));
}

Status ListenWithin(const FabricLibrary& library, PortRange ports, fi_info& info,
                    const std::function<Status(fi_info& info)>& listen) {
  Address address;
  if (info.src_addr != nullptr) {
    address = SocketAddress(info.addr_format,
                            {static_cast<const char*>(info.src_addr), info.src_addrlen});
  }
  if (ports.first == 0 || !address.known()) return listen(info);
  Status failed;
  for (int i = 0; i < kListenTries; ++i) {
    // A provider does not say whether the port is the reason for which it fails.
    Result<UniqueFd> free = ListenAt(HostText(address), ports);
    if (!free.ok()) return free.status();
    SetPort(address, PortOf(LocalAddress(free->get())));
    free->Reset();
    const FabricInfo copy(library.dupinfo(&info), {&library});
    if (copy == nullptr) return {Code::kLimit, "listen over the fabric: out of memory"};
    std::memcpy(copy->src_addr, &address.storage, address.length);
    failed = listen(*copy);
    if (failed.ok()) break;
  }
  return failed;
}

std::string InterfaceText(const fi_info& info) {
  if (info.src_addr != nullptr) {
    const std::string text =
        SocketText(info.addr_format, {static_cast<const char*>(info.src_addr), info.src_addrlen});
    if (!text.empty()) return text.substr(0, text.rfind(':'));
  }
  return info.domain_attr->name == nullptr ? "?" : info.domain_attr->name;
}

}  // namespace sonde::tree
