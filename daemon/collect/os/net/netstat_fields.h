// The table of /proc/net/netstat's fields that only level 4 keeps.
//
// Thread safety: constants.
#pragma once

#include <span>
#include <string_view>

#include "daemon/collect/os/net/protocols_source.h"

namespace sonde::collect::netstat_fields {

inline constexpr std::string_view kTcpExt = "TcpExt:";
inline constexpr std::string_view kIpExt = "IpExt:";

extern const std::span<const ProtocolField> kDetails;

}  // namespace sonde::collect::netstat_fields
