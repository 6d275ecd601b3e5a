// AES-128-GCM by the instructions that x86-64 processors have for it.
//
// The bytes are those of nettle's gcm_aes128, and a test compares the two. nettle 3.8 multiplies
// one block after the other, which alone costs more than the whole share of a message's time that
// sealing may take, and keeps 4 KiB of tables a key. This code multiplies eight blocks at a time,
// and keeps 0.5 KiB. It has neither branches nor addresses that depend on a secret.
//
// Thread safety: none; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/link/trust/aead.h"

namespace sonde::tree {

enum class GcmCode : uint8_t {
  kNone,   // this processor has no instructions for it: nettle's code is used
  kAesNi,  // AES-NI and PCLMULQDQ, a block an instruction
  kVaes,   // VAES and VPCLMULQDQ, two blocks an instruction
};

// What this processor does fastest.
GcmCode BestGcmCode();
// nullptr for kNone. The processor must have what the code needs.
std::unique_ptr<Aead> MakeFastGcm(const AeadKey& key, GcmCode code);

}  // namespace sonde::tree
