// What comes from anybody to an endpoint of reliable datagrams.
#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/bytes.h"
#include "daemon/link/libfabric/fabric_info.h"
#include "daemon/link/libfabric/rdm_packet.h"

namespace {

using namespace sonde;
using namespace sonde::tree;

// Where a hello says that it comes from.
void TryAddress(std::string_view payload) {
  ByteReader reader(payload);
  const auto format = reader.Fixed<uint32_t>();
  const std::string_view raw = reader.Raw(reader.left());
  for (const uint32_t own : {FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_ADDR_STR, FI_ADDR_EFA}) {
    fi_info info{};
    info.addr_format = own;
    info.src_addrlen = 16;
    if (reader.ok() && IsAddressFor(info, format, raw)) (void)SocketText(format, raw);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto packet = DecodeRdmPacket(bytes);
  if (!packet) return 0;
  // What decodes is what would have been sent.
  std::string again(kRdmHeader, '\0');
  EncodeHeader(*packet, again.data());
  again += packet->payload;
  if (again != bytes) __builtin_trap();
  if (packet->kind == RdmKind::kHello) TryAddress(packet->payload);
  return 0;
}
