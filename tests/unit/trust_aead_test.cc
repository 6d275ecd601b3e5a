#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nettle/gcm.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/link/trust/aes_gcm.h"

namespace sonde::tree {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes FromHex(const std::string& hex) {
  Bytes bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Bytes Pattern(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 131 + i / 251);
  return bytes;
}

template <typename Array>
Array Filled(const Bytes& bytes) {
  Array array{};
  std::copy(bytes.begin(), bytes.end(), array.begin());
  return array;
}

Bytes SealedBy(Aead& aead, const AeadNonce& nonce, Bytes text) {
  const size_t size = text.size();
  text.resize(size + kTagSize);
  aead.Seal(nonce, text.data(), size);
  return text;
}

// Everything that can seal on this machine.
std::vector<std::unique_ptr<Aead>> All(const AeadKey& key) {
  std::vector<std::unique_ptr<Aead>> all;
  for (const Cipher cipher : {Cipher::kAes128Gcm, Cipher::kChaCha20Poly1305}) {
    all.push_back(MakeAead(cipher, key));
  }
  for (int code = 1; code <= static_cast<int>(BestGcmCode()); ++code) {
    all.push_back(MakeFastGcm(key, static_cast<GcmCode>(code)));
  }
  return all;
}

// Test case 3 of "The Galois/Counter Mode of Operation", McGrew and Viega.
TEST(Aead, GcmGivesTheBytesOfItsStandard) {
  const auto key = Filled<AeadKey>(FromHex("feffe9928665731c6d6a8f9467308308"));
  const auto nonce = Filled<AeadNonce>(FromHex("cafebabefacedbaddecaf888"));
  const Bytes text = FromHex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255");
  const Bytes expected = FromHex(
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
      "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985"
      "4d5c2af327cd64a62cf35abd2ba6fab4");
  EXPECT_EQ(SealedBy(*MakeAead(Cipher::kAes128Gcm, key), nonce, text), expected);
  for (int code = 1; code <= static_cast<int>(BestGcmCode()); ++code) {
    EXPECT_EQ(SealedBy(*MakeFastGcm(key, static_cast<GcmCode>(code)), nonce, text), expected)
        << code;
  }
}

TEST(Aead, OurGcmAndNettlesAreTheSameForAllSizes) {
  AeadNonce nonce = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  for (uint8_t fill = 0; fill < 4; ++fill) {
    const auto key = Filled<AeadKey>(Bytes(32, static_cast<uint8_t>(fill * 85)));
    gcm_aes128_ctx nettle;
    gcm_aes128_set_key(&nettle, key.data());
    for (int code = 1; code <= static_cast<int>(BestGcmCode()); ++code) {
      const auto aead = MakeFastGcm(key, static_cast<GcmCode>(code));
      for (size_t size = 0; size < 700; ++size) {
        ++nonce[size % nonce.size()];
        Bytes expected = Pattern(size + kTagSize);
        gcm_aes128_set_iv(&nettle, nonce.size(), nonce.data());
        gcm_aes128_encrypt(&nettle, size, expected.data(), expected.data());
        gcm_aes128_digest(&nettle, kTagSize, expected.data() + size);
        ASSERT_EQ(SealedBy(*aead, nonce, Pattern(size)), expected) << code << ", " << size;
      }
    }
  }
}

TEST(Aead, OpensWhatItSealedAndNothingElse) {
  const AeadNonce nonce{};
  for (const auto& aead : All({1, 2, 3})) {
    for (const size_t size : {0u, 1u, 15u, 16u, 127u, 128u, 129u, 300u, 4096u, 1u << 20}) {
      Bytes sealed = SealedBy(*aead, nonce, Pattern(size));
      Bytes text(size);
      ASSERT_TRUE(aead->Open(nonce, sealed.data(), size, text.data()));
      EXPECT_EQ(text, Pattern(size));
      const size_t step = std::max<size_t>(1, size / 50);
      for (size_t i = 0; i < sealed.size(); i += step) {
        sealed[i] ^= 0x40;
        ASSERT_FALSE(aead->Open(nonce, sealed.data(), size, text.data())) << size << ", " << i;
        sealed[i] ^= 0x40;
      }
      EXPECT_FALSE(aead->Open({1}, sealed.data(), size, text.data()));
      EXPECT_TRUE(size == 0 || !aead->Open(nonce, sealed.data(), size - 1, text.data()));
    }
  }
}

// A machine with the instructions and one without agree on what both do well.
TEST(Aead, TheCipherIsWhatBothDoFast) {
  const std::string ours = PreferredCipherList();
  EXPECT_EQ(ChooseCipher(ours), static_cast<Cipher>(ours[0]));
  EXPECT_EQ(ChooseCipher({ours.rbegin(), ours.rend()}), Cipher::kChaCha20Poly1305);
  EXPECT_EQ(ChooseCipher(""), Cipher::kChaCha20Poly1305);
  EXPECT_EQ(ChooseCipher("\x7f"), Cipher::kChaCha20Poly1305);
}

}  // namespace
}  // namespace sonde::tree
