#include "web/http/gzip.h"

#include <fmt/core.h>
#include <zlib.h>

#include <cstdint>
#include <new>

namespace sonde::web {
namespace {

// The window of 32 KiB, and gzip's own header and trailer, which zlib writes and checks.
constexpr int kGzipWindow = 15 + 16;
constexpr size_t kPiece = 16384;

constexpr size_t kLeast = 18;  // header and trailer

// The unpacked size that the end of the file gives (modulo 2^32); zlib compares it.
size_t SizeOf(std::string_view file) {
  uint32_t size = 0;
  for (size_t i = 0; i < 4; ++i) {
    size |= uint32_t{static_cast<unsigned char>(file[file.size() - 4 + i])} << (8 * i);
  }
  return size;
}

Status Damaged() {
  return {Code::kInvalid,
          "the body is no gzip file, or damaged, though its Content-Encoding says so"};
}

// zlib reads through pointers that are not const.
Bytef* Input(std::string_view bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

struct Inflater {
  Inflater() {
    if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  z_stream stream{};
};

}  // namespace

Result<std::string> Gunzip(std::string_view bytes, size_t limit) {
  if (bytes.size() < kLeast) return Damaged();
  const size_t size = SizeOf(bytes);
  if (size > limit) {
    return Status(Code::kLimit,
                  fmt::format("the body has {} bytes unpacked, more than {}", size, limit));
  }
  std::string out(size + 1, '\0');  // one more, to see whether the data is longer than stated
  Inflater inflater;
  z_stream& stream = inflater.stream;
  stream.next_in = Input(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (inflate(&stream, Z_FINISH) != Z_STREAM_END || stream.avail_in != 0) return Damaged();
  out.resize(size);
  return out;
}

struct Gzip::State {
  State() {
    constexpr int kLevel = 1, kMemory = 8;
    if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~State() { deflateEnd(&stream); }
  z_stream stream{};
};

Gzip::Gzip() : state_(std::make_unique<State>()) {}
Gzip::~Gzip() = default;

void Gzip::Add(std::string_view bytes, bool last, std::string& out) {
  z_stream& stream = state_->stream;
  stream.next_in = Input(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  do {
    char packed[kPiece];
    stream.next_out = reinterpret_cast<Bytef*>(packed);
    stream.avail_out = sizeof(packed);
    deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    out.append(packed, sizeof(packed) - stream.avail_out);
  } while (stream.avail_out == 0);
}

}  // namespace sonde::web
