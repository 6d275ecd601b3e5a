// What libfabric offers on this machine: providers, and the description of the one to be opened.
//
// Thread safety: any thread; fi_getinfo may take 0.1 s.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "daemon/link/libfabric/fabric.h"
#include "daemon/link/libfabric/fabric_library.h"

namespace sonde::tree {

inline constexpr size_t kMaxFabricAddress = 256;

// "MSG": connected endpoints; "RDM": reliable datagrams.
std::string_view ToString(Endpoint type);

struct ProviderOffer {
  std::string name;
  bool msg = false;
  bool rdm = false;
};
// What is installed and finds its hardware, in libfabric's order.
std::vector<ProviderOffer> OfferedProviders(const FabricLibrary& library);

// How an endpoint of that type and provider is described on the interface that the options ask for.
// kNotFound tells what there is instead.
Result<FabricInfo> ChooseInfo(const FabricLibrary& library, Endpoint type,
                              const std::string& provider, const FabricOptions& options);

bool IsSocketFormat(uint32_t format);
// Whether a provider of that description may read these bytes, which came from elsewhere, as an
// address.
bool IsAddressFor(const fi_info& info, uint32_t format, std::string_view bytes);
// "10.0.0.7:51234" for addresses of sockets; "" for others.
std::string SocketText(uint32_t format, std::string_view bytes);
// 0 for others.
uint16_t SocketPort(uint32_t format, std::string_view bytes);
// Calls `listen` with the description of an endpoint that has a free port of the range, or with
// `info` itself if such endpoints have no port of sockets, or may have any.
Status ListenWithin(const FabricLibrary& library, PortRange ports, fi_info& info,
                    const std::function<Status(fi_info& info)>& listen);
// "10.0.0.7", or the domain's name: where an endpoint of that description is.
std::string InterfaceText(const fi_info& info);

}  // namespace sonde::tree
