#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "daemon/link/trust/seal.h"

namespace sonde::tree {
namespace {

constexpr SealKey kKey{{1, 2, 3}, {4, 5, 6}};

SealedStream Stream(uint64_t number = 0) { return SealedStream(kKey, number); }

std::string Sealed(SealedStream& stream, uint8_t type, const std::string& payload) {
  std::string out(payload.size() + kSealOverhead, '\0');
  stream.Seal(type, payload, out.data());
  stream.Next();
  return out;
}

bool Opens(SealedStream& stream, const std::string& sealed) {
  std::string room(sealed.size(), '\0');
  return stream.Open(sealed, room.data()).has_value();
}

TEST(SealedStream, GivesTypeAndPayloadInOrder) {
  SealedStream from = Stream();
  SealedStream to = Stream();
  for (const std::string& payload : {std::string(), std::string("a"), std::string(5000, 'x')}) {
    const std::string sealed = Sealed(from, 21, payload);
    std::string room(sealed.size(), '\0');
    const auto message = to.Open(sealed, room.data());
    ASSERT_TRUE(message);
    EXPECT_EQ(message->type, 21);
    EXPECT_EQ(message->payload, payload);
  }
}

// Neither what is said shows, nor that the same is said twice.
TEST(SealedStream, ShowsNothingButTheLength) {
  SealedStream from = Stream();
  const std::string marker = "a marker that is long enough";
  const std::string first = Sealed(from, 14, marker);
  const std::string second = Sealed(from, 14, marker);
  for (const std::string& sealed : {first, second}) {
    EXPECT_EQ(sealed.size(), marker.size() + kSealOverhead);
    EXPECT_EQ(sealed.find(marker.substr(0, 4)), std::string::npos);
  }
  EXPECT_NE(first, second);
}

TEST(SealedStream, OpensOnlyTheNextMessage) {
  SealedStream from = Stream();
  const std::string first = Sealed(from, 1, "one");
  const std::string second = Sealed(from, 1, "two");
  SealedStream to = Stream();
  EXPECT_FALSE(Opens(to, second)) << "one was left out";
  ASSERT_TRUE(Opens(to, first));
  EXPECT_FALSE(Opens(to, first)) << "repeated";
  EXPECT_TRUE(Opens(to, second));
}

TEST(SealedStream, OpensNothingThatWasChangedOrCut) {
  SealedStream from = Stream();
  const std::string sealed = Sealed(from, 1, "payload");
  SealedStream to = Stream();
  for (size_t i = 0; i < sealed.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = sealed;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_FALSE(Opens(to, changed)) << i;
    }
    EXPECT_FALSE(Opens(to, sealed.substr(0, i))) << i;
  }
  EXPECT_FALSE(Opens(to, sealed + '\0'));
  EXPECT_TRUE(Opens(to, sealed));
}

TEST(SealedStream, KeysDiffer) {
  SealedStream from = Stream();
  const std::string sealed = Sealed(from, 1, "payload");
  SealedStream other_key({{9, 2, 3}, kKey.start});
  EXPECT_FALSE(Opens(other_key, sealed));
  SealedStream other_start({kKey.key, {9, 5, 6}});
  EXPECT_FALSE(Opens(other_start, sealed));
}

// Numbers are 8 bytes long and the last ones of a nonce.
TEST(SealedStream, EachNumberHasANonceOfItsOwn) {
  std::set<std::string> all;
  for (int bit = 0; bit < 64; ++bit) {
    SealedStream from = Stream(uint64_t{1} << bit);
    all.insert(Sealed(from, 1, "payload"));
  }
  EXPECT_EQ(all.size(), 64u);
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

TEST(SealedStream, IsUsedUpOnce) {
  SealedStream from = Stream(SealedStream::kMaxMessages - 1);
  SealedStream to = Stream(SealedStream::kMaxMessages - 1);
  EXPECT_FALSE(from.used_up());
  EXPECT_TRUE(Opens(to, Sealed(from, 1, "last")));
  EXPECT_TRUE(from.used_up());
  EXPECT_TRUE(to.used_up());
  EXPECT_FALSE(Opens(to, Sealed(from, 1, "beyond")));
}

TEST(SealedStream, IsUsedUpByBytesAsWell) {
  const std::string payload(100, 'x');
  SealedStream from(kKey, 7, SealedStream::kMaxBytes - 150);
  SealedStream to(kKey, 7, SealedStream::kMaxBytes - 150);
  EXPECT_TRUE(Opens(to, Sealed(from, 1, payload)));
  EXPECT_FALSE(from.used_up());
  EXPECT_TRUE(Opens(to, Sealed(from, 1, payload)));
  EXPECT_TRUE(from.used_up());
  EXPECT_TRUE(to.used_up());
  EXPECT_FALSE(Opens(to, Sealed(from, 1, payload)));
}

// As another implementation gives it: AESGCM of Python's cryptography.
TEST(SealedStream, IsAesGcm) {
  SealKey key;
  for (size_t i = 0; i < key.key.size(); ++i) key.key[i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < key.start.size(); ++i) key.start[i] = static_cast<uint8_t>(0x40 + i);
  SealedStream from(key, 0x0102030405060708);
  EXPECT_EQ(Sealed(from, 21, "frame"), FromHex("287bc87a0934bbfa3b56ce622150f16256d771c69a5b"));
}

}  // namespace
}  // namespace sonde::tree
