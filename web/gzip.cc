#include "web/gzip.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/zlib/deflate_stream.hpp>
#include <boost/beast/zlib/inflate_stream.hpp>
#include <boost/crc.hpp>
#include <cstdint>
#include <utility>

namespace sonde::web {
namespace {

namespace zlib = boost::beast::zlib;

constexpr size_t kHeader = 10;
constexpr size_t kTrailer = 8;
enum Flag : unsigned { kHeaderCheck = 2, kExtra = 4, kName = 8, kComment = 16, kReserved = 0xe0 };

Status Damaged() {
  return {Code::kInvalid,
          "the body is no gzip file, or damaged, though its Content-Encoding says so"};
}

uint32_t Little(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

// Where the compressed bytes begin; 0 if that is no header.
size_t SkipHeader(std::string_view bytes) {
  if (bytes.size() < kHeader + kTrailer || !bytes.starts_with("\x1f\x8b\x08")) return 0;
  const unsigned flags = static_cast<unsigned char>(bytes[3]);
  if ((flags & kReserved) != 0) return 0;
  size_t at = kHeader;
  if ((flags & kExtra) != 0) {
    if (bytes.size() < at + 2) return 0;
    at +=
        2 + static_cast<unsigned char>(bytes[at]) + 256 * static_cast<unsigned char>(bytes[at + 1]);
  }
  for (const unsigned text : {kName, kComment}) {
    if ((flags & text) == 0) continue;
    const size_t end = at < bytes.size() ? bytes.find('\0', at) : std::string_view::npos;
    if (end == std::string_view::npos) return 0;
    at = end + 1;
  }
  if ((flags & kHeaderCheck) != 0) at += 2;
  return at + kTrailer <= bytes.size() ? at : 0;
}

}  // namespace

Result<std::string> Gunzip(std::string_view bytes, size_t limit) {
  const size_t begin = SkipHeader(bytes);
  if (begin == 0) return Damaged();
  const std::string_view trailer = bytes.substr(bytes.size() - kTrailer);
  // With the trailer: the last code is read with bits of what follows, of which a byte may be
  // taken.
  const std::string_view packed = bytes.substr(begin);
  const size_t size = Little(trailer.substr(4));
  if (size > limit) {
    return Status(Code::kLimit,
                  fmt::format("the body has {} bytes unpacked, more than {}", size, limit));
  }
  std::string out(size + 1, '\0');  // one more, to see whether it is longer than it says
  zlib::inflate_stream stream;
  zlib::z_params state;
  state.next_in = packed.data();
  state.avail_in = packed.size();
  state.next_out = out.data();
  state.avail_out = out.size();
  boost::system::error_code error;
  stream.write(state, zlib::Flush::sync, error);
  if (error != zlib::error::end_of_stream || state.total_out != size || state.avail_in > kTrailer) {
    return Damaged();
  }
  out.resize(size);
  boost::crc_32_type check;
  check.process_bytes(out.data(), out.size());
  if (check.checksum() != Little(trailer)) return Damaged();
  return out;
}

struct Gzip::State {
  zlib::deflate_stream stream;
  boost::crc_32_type check;
  uint32_t size = 0;
  bool begun = false;
};

Gzip::Gzip() : state_(std::make_unique<State>()) {
  constexpr int kLevel = 1, kWindowBits = 15, kMemory = 8;
  state_->stream.reset(kLevel, kWindowBits, kMemory, zlib::Strategy::normal);
}

Gzip::~Gzip() = default;

void Gzip::Add(std::string_view bytes, bool last, std::string& out) {
  if (!std::exchange(state_->begun, true)) {
    out.append("\x1f\x8b\x08\0\0\0\0\0\x04\xff", kHeader);  // deflate, no name, fastest, no system
  }
  state_->check.process_bytes(bytes.data(), bytes.size());
  state_->size += static_cast<uint32_t>(bytes.size());
  zlib::z_params state;
  state.next_in = bytes.data();
  state.avail_in = bytes.size();
  boost::system::error_code error;
  do {
    char packed[16384];
    state.next_out = packed;
    state.avail_out = sizeof(packed);
    state_->stream.write(state, last ? zlib::Flush::finish : zlib::Flush::none, error);
    out.append(packed, sizeof(packed) - state.avail_out);
  } while (!error && (state.avail_out == 0 || state.avail_in != 0));
  if (!last) return;
  for (const uint32_t word : {static_cast<uint32_t>(state_->check.checksum()), state_->size}) {
    for (int i = 0; i < 4; ++i) out += static_cast<char>(word >> (8 * i));
  }
}

}  // namespace sonde::web
