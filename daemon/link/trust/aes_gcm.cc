// Names are those of NIST SP 800-38D: H, the key of the hash; J0, the block of counter 1. The hash
// is computed as POLYVAL (RFC 8452, appendix A), whose bits lie in the order in which PCLMULQDQ
// takes them.
#include "daemon/link/trust/aes_gcm.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <nettle/memops.h>
#include <string.h>

#include <algorithm>

namespace sonde::tree {
namespace {

// Each function says which instructions it uses: the rest of the program runs without them.
#define SONDE_AESNI __attribute__((target("aes,pclmul,ssse3,sse4.1")))
#define SONDE_AESNI_INLINE __attribute__((target("aes,pclmul,ssse3,sse4.1"), always_inline)) inline
#define SONDE_VAES __attribute__((target("aes,pclmul,avx2,vaes,vpclmulqdq")))
#define SONDE_VAES_INLINE \
  __attribute__((target("aes,pclmul,avx2,vaes,vpclmulqdq"), always_inline)) inline

constexpr int kRounds = 10;
constexpr int kWide = 8;  // blocks at a time
constexpr size_t kBlock = 16;
constexpr size_t kWideBytes = kWide * kBlock;

struct GcmKey {
  __m128i round[kRounds + 1];
  // The powers of H, the first one first: of a whole batch, and one more for the block of lengths.
  __m128i power[kWide + 1];
  __m128i folded[kWide + 1];  // each power's two halves added up, for Karatsuba's multiplication
};

SONDE_AESNI_INLINE __m128i Load(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
SONDE_AESNI_INLINE void Store(uint8_t* p, __m128i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
}
SONDE_AESNI_INLINE __m128i Reversed(__m128i v) {
  return _mm_shuffle_epi8(v, _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
SONDE_AESNI_INLINE __m128i Swapped(__m128i v) { return _mm_shuffle_epi32(v, 0x4e); }

// --- The hash ---

// Products that are added up before they are reduced once.
struct Products {
  __m128i low = _mm_setzero_si128();
  __m128i middle = _mm_setzero_si128();
  __m128i high = _mm_setzero_si128();
};

SONDE_AESNI_INLINE void AddProduct(__m128i block, __m128i power, __m128i folded, Products& sum) {
  const __m128i both = _mm_xor_si128(block, Swapped(block));
  sum.low = _mm_xor_si128(sum.low, _mm_clmulepi64_si128(block, power, 0x00));
  sum.high = _mm_xor_si128(sum.high, _mm_clmulepi64_si128(block, power, 0x11));
  sum.middle = _mm_xor_si128(sum.middle, _mm_clmulepi64_si128(both, folded, 0x00));
}

// Montgomery's reduction by x^128 + x^127 + x^126 + x^121 + 1.
SONDE_AESNI_INLINE __m128i Reduce(const Products& sum) {
  const __m128i polynomial = _mm_set_epi64x(static_cast<int64_t>(0xc200000000000000), 0);
  const __m128i middle = _mm_xor_si128(sum.middle, _mm_xor_si128(sum.low, sum.high));
  __m128i low = _mm_xor_si128(sum.low, _mm_slli_si128(middle, 8));
  const __m128i high = _mm_xor_si128(sum.high, _mm_srli_si128(middle, 8));
  low = _mm_xor_si128(Swapped(low), _mm_clmulepi64_si128(low, polynomial, 0x10));
  low = _mm_xor_si128(Swapped(low), _mm_clmulepi64_si128(low, polynomial, 0x10));
  return _mm_xor_si128(high, low);
}

// --- AES ---

SONDE_AESNI_INLINE __m128i Encrypted(const GcmKey& key, __m128i block) {
  block = _mm_xor_si128(block, key.round[0]);
#pragma GCC unroll 10
  for (int i = 1; i < kRounds; ++i) block = _mm_aesenc_si128(block, key.round[i]);
  return _mm_aesenclast_si128(block, key.round[kRounds]);
}

template <int Constant>
SONDE_AESNI_INLINE __m128i NextRoundKey(__m128i key) {
  const __m128i word = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(key, Constant), 0xff);
  for (int i = 0; i < 3; ++i) key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  return _mm_xor_si128(key, word);
}

SONDE_AESNI void Expand(const uint8_t* bytes, GcmKey& key) {
  __m128i* const round = key.round;
  round[0] = Load(bytes);
  round[1] = NextRoundKey<0x01>(round[0]);
  round[2] = NextRoundKey<0x02>(round[1]);
  round[3] = NextRoundKey<0x04>(round[2]);
  round[4] = NextRoundKey<0x08>(round[3]);
  round[5] = NextRoundKey<0x10>(round[4]);
  round[6] = NextRoundKey<0x20>(round[5]);
  round[7] = NextRoundKey<0x40>(round[6]);
  round[8] = NextRoundKey<0x80>(round[7]);
  round[9] = NextRoundKey<0x1b>(round[8]);
  round[10] = NextRoundKey<0x36>(round[9]);

  // H times x: what turns GHASH into POLYVAL.
  uint64_t h[2];
  Store(reinterpret_cast<uint8_t*>(h), Reversed(Encrypted(key, _mm_setzero_si128())));
  const uint64_t carry = 0 - (h[1] >> 63);
  h[1] = (h[1] << 1 | h[0] >> 63) ^ (carry & 0xc200000000000000);
  h[0] = (h[0] << 1) ^ (carry & 1);
  __m128i power = _mm_set_epi64x(static_cast<int64_t>(h[1]), static_cast<int64_t>(h[0]));
  for (int i = 0; i <= kWide; ++i) {
    key.power[i] = power;
    key.folded[i] = _mm_xor_si128(power, Swapped(power));
    Products product;
    AddProduct(power, key.power[0], key.folded[0], product);
    power = Reduce(product);
  }
  explicit_bzero(h, sizeof h);
}

// --- Whole batches ---

// What goes on from one part of a message to the next.
struct Stream {
  __m128i counter;  // of the block before, as a number
  __m128i hash;
};

// The keystream of the next blocks.
SONDE_AESNI_INLINE void NextKeystream(const GcmKey& key, __m128i& counter, __m128i (&out)[kWide]) {
#pragma GCC unroll 8
  for (__m128i& block : out) {
    counter = _mm_add_epi32(counter, _mm_set_epi32(0, 0, 0, 1));
    block = _mm_xor_si128(Reversed(counter), key.round[0]);
  }
#pragma GCC unroll 10
  for (int r = 1; r < kRounds; ++r) {
#pragma GCC unroll 8
    for (__m128i& block : out) block = _mm_aesenc_si128(block, key.round[r]);
  }
#pragma GCC unroll 8
  for (__m128i& block : out) block = _mm_aesenclast_si128(block, key.round[kRounds]);
}

// `hashed`: the batch's encrypted bytes, whichever side they are on.
SONDE_AESNI_INLINE __m128i HashBatch(const GcmKey& key, __m128i hash, const uint8_t* hashed) {
  Products sum;
  // The first block last: it waits for what comes before the batch.
#pragma GCC unroll 8
  for (int i = kWide - 1; i >= 0; --i) {
    __m128i block = Reversed(Load(hashed + kBlock * i));
    if (i == 0) block = _mm_xor_si128(block, hash);
    AddProduct(block, key.power[kWide - 1 - i], key.folded[kWide - 1 - i], sum);
  }
  return Reduce(sum);
}

// All whole batches of `size` bytes; how many bytes that are.
template <bool kSeals>
SONDE_AESNI size_t AesNiBatches(const GcmKey& key, Stream& stream, const uint8_t* from, size_t size,
                                uint8_t* to) {
  size_t done = 0;
  for (; size - done >= kWideBytes; done += kWideBytes) {
    if (!kSeals) stream.hash = HashBatch(key, stream.hash, from + done);
    __m128i blocks[kWide];
    NextKeystream(key, stream.counter, blocks);
#pragma GCC unroll 8
    for (int i = 0; i < kWide; ++i) {
      Store(to + done + kBlock * i, _mm_xor_si128(blocks[i], Load(from + done + kBlock * i)));
    }
    if (kSeals) stream.hash = HashBatch(key, stream.hash, to + done);
  }
  return done;
}

// --- The same, two blocks an instruction ---

constexpr int kPairs = kWide / 2;

SONDE_VAES_INLINE __m256i LoadPair(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
SONDE_VAES_INLINE __m256i Twice(__m128i v) { return _mm256_broadcastsi128_si256(v); }
SONDE_VAES_INLINE __m256i PairOf(__m128i first, __m128i second) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
}
SONDE_VAES_INLINE __m256i ReversedPair(__m256i v) {
  return _mm256_shuffle_epi8(
      v, Twice(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
}
SONDE_VAES_INLINE __m128i SumOfPair(__m256i v) {
  return _mm_xor_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

SONDE_VAES_INLINE __m128i HashPairs(const __m256i (&power)[kPairs], const __m256i (&folded)[kPairs],
                                    __m128i hash, const uint8_t* hashed) {
  __m256i low = _mm256_setzero_si256();
  __m256i middle = low;
  __m256i high = low;
#pragma GCC unroll 4
  for (int i = kPairs - 1; i >= 0; --i) {
    __m256i block = ReversedPair(LoadPair(hashed + 2 * kBlock * i));
    if (i == 0) block = _mm256_xor_si256(block, _mm256_zextsi128_si256(hash));
    const __m256i both = _mm256_xor_si256(block, _mm256_shuffle_epi32(block, 0x4e));
    low = _mm256_xor_si256(low, _mm256_clmulepi64_epi128(block, power[i], 0x00));
    high = _mm256_xor_si256(high, _mm256_clmulepi64_epi128(block, power[i], 0x11));
    middle = _mm256_xor_si256(middle, _mm256_clmulepi64_epi128(both, folded[i], 0x00));
  }
  Products sum;
  sum.low = SumOfPair(low);
  sum.middle = SumOfPair(middle);
  sum.high = SumOfPair(high);
  return Reduce(sum);
}

template <bool kSeals>
SONDE_VAES size_t VaesBatches(const GcmKey& key, Stream& stream, const uint8_t* from, size_t size,
                              uint8_t* to) {
  if (size < kWideBytes) return 0;
  __m256i power[kPairs];
  __m256i folded[kPairs];
  for (int i = 0; i < kPairs; ++i) {
    const int first = kWide - 1 - 2 * i;
    power[i] = PairOf(key.power[first], key.power[first - 1]);
    folded[i] = PairOf(key.folded[first], key.folded[first - 1]);
  }
  __m256i counter =
      _mm256_add_epi32(Twice(stream.counter), _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 1));
  __m128i hash = stream.hash;
  size_t done = 0;
  for (; size - done >= kWideBytes; done += kWideBytes) {
    if (!kSeals) hash = HashPairs(power, folded, hash, from + done);
    __m256i blocks[kPairs];
#pragma GCC unroll 4
    for (__m256i& pair : blocks) {
      pair = _mm256_xor_si256(ReversedPair(counter), Twice(key.round[0]));
      counter = _mm256_add_epi32(counter, _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 2));
    }
#pragma GCC unroll 10
    for (int r = 1; r < kRounds; ++r) {
      const __m256i round = Twice(key.round[r]);
#pragma GCC unroll 4
      for (__m256i& pair : blocks) pair = _mm256_aesenc_epi128(pair, round);
    }
    const __m256i last = Twice(key.round[kRounds]);
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) {
      const __m256i text = LoadPair(from + done + 2 * kBlock * i);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + done + 2 * kBlock * i),
                          _mm256_xor_si256(text, _mm256_aesenclast_epi128(blocks[i], last)));
    }
    if (kSeals) hash = HashPairs(power, folded, hash, to + done);
  }
  stream.hash = hash;
  // `counter` is that of the next block.
  stream.counter = _mm_sub_epi32(_mm256_castsi256_si128(counter), _mm_set_epi32(0, 0, 0, 1));
  return done;
}

// --- A message ---

// Of a block's first bytes: Load(kFirstBytes + kBlock - n) has n of them set.
alignas(kBlock) constexpr uint8_t kFirstBytes[2 * kBlock] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

// What no whole batch is left of: less than kWide blocks, the last of them perhaps not whole.
template <bool kSeals>
SONDE_AESNI_INLINE void CryptRest(const GcmKey& key, Stream& stream, const uint8_t* from,
                                  size_t size, uint8_t* to, Products& sum) {
  if (size == 0) return;
  alignas(kBlock) uint8_t text[kWideBytes] = {};
  memcpy(text, from, size);
  const size_t blocks = (size + kBlock - 1) / kBlock;
  __m128i keystream[kWide];
  NextKeystream(key, stream.counter, keystream);
  alignas(kBlock) uint8_t out[kWideBytes];
  for (size_t i = 0; i < blocks; ++i) {
    const __m128i in = Load(text + kBlock * i);
    const __m128i crypted = _mm_xor_si128(in, keystream[i]);
    Store(out + kBlock * i, crypted);
    __m128i hashed = kSeals ? crypted : in;
    if (kSeals && i + 1 == blocks) {
      hashed = _mm_and_si128(hashed, Load(kFirstBytes + (kBlock * blocks - size)));
    }
    __m128i block = Reversed(hashed);
    if (i == 0) block = _mm_xor_si128(block, stream.hash);
    AddProduct(block, key.power[blocks - i], key.folded[blocks - i], sum);
  }
  memcpy(to, out, size);
}

template <bool kSeals>
SONDE_AESNI void Crypt(const GcmKey& key, GcmCode code, const AeadNonce& nonce, const uint8_t* from,
                       size_t size, uint8_t* to, uint8_t* tag) {
  alignas(kBlock) uint8_t j0[kBlock] = {};
  std::copy(nonce.begin(), nonce.end(), j0);
  j0[kBlock - 1] = 1;
  const __m128i mask = Encrypted(key, Load(j0));
  Stream stream{Reversed(Load(j0)), _mm_setzero_si128()};
  const size_t done = code == GcmCode::kVaes ? VaesBatches<kSeals>(key, stream, from, size, to)
                                             : AesNiBatches<kSeals>(key, stream, from, size, to);
  Products sum;
  const size_t rest = size % kWideBytes;
  CryptRest<kSeals>(key, stream, from + done, rest, to + done, sum);
  __m128i lengths = _mm_set_epi64x(0, static_cast<int64_t>(8 * size));
  if (rest == 0) lengths = _mm_xor_si128(lengths, stream.hash);
  AddProduct(lengths, key.power[0], key.folded[0], sum);
  Store(tag, _mm_xor_si128(Reversed(Reduce(sum)), mask));
}

class FastGcm final : public Aead {
 public:
  FastGcm(const AeadKey& key, GcmCode code) : code_(code) { Expand(key.data(), key_); }
  ~FastGcm() override { explicit_bzero(&key_, sizeof key_); }

  void Seal(const AeadNonce& nonce, uint8_t* text, size_t size) override {
    Crypt<true>(key_, code_, nonce, text, size, text, text + size);
  }
  bool Open(const AeadNonce& nonce, const uint8_t* sealed, size_t size, uint8_t* text) override {
    uint8_t tag[kTagSize];
    Crypt<false>(key_, code_, nonce, sealed, size, text, tag);
    return memeql_sec(tag, sealed + size, kTagSize) != 0;
  }

 private:
  GcmKey key_;
  const GcmCode code_;
};

GcmCode FindBestCode() {
  if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul") ||
      !__builtin_cpu_supports("sse4.1")) {
    return GcmCode::kNone;
  }
  constexpr unsigned kBoth = 1u << 9 | 1u << 10;  // VAES and VPCLMULQDQ, in ecx of leaf 7
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool wide = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & kBoth) == kBoth;
  return wide && __builtin_cpu_supports("avx2") ? GcmCode::kVaes : GcmCode::kAesNi;
}

}  // namespace

GcmCode BestGcmCode() {
  static const GcmCode best = FindBestCode();
  return best;
}

std::unique_ptr<Aead> MakeFastGcm(const AeadKey& key, GcmCode code) {
  if (code == GcmCode::kNone) return nullptr;
  return std::make_unique<FastGcm>(key, code);
}

}  // namespace sonde::tree

#else

namespace sonde::tree {

GcmCode BestGcmCode() { return GcmCode::kNone; }
std::unique_ptr<Aead> MakeFastGcm(const AeadKey& /*key*/, GcmCode /*code*/) { return nullptr; }

}  // namespace sonde::tree

#endif
