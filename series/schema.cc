#include "series/schema.h"

#include <fmt/format.h>

#include "core/bytes.h"
#include "series/series_bytes.h"

namespace sonde {
namespace {

// Never to change: the first byte of an encoded schema.
constexpr uint8_t kVersion = 1;

// FNV-1a, 64 bits. Never to change: ids stand in blocks on disk.
uint64_t Hash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

Schema::Schema(std::vector<Series> series) : series_(std::move(series)) {
  ByteWriter out(encoded_);
  out.Fixed(kVersion);
  out.Varint(series_.size());
  for (const Series& s : series_) WriteSeries(s, out);
  encoded_.shrink_to_fit();
  id_ = Hash(encoded_);
}

Schema::Ptr Schema::Make(std::vector<Series> series) { return Ptr(new Schema(std::move(series))); }

Result<Schema::Ptr> Schema::Decode(std::string_view bytes) {
  ByteReader in(bytes);
  const auto version = in.Fixed<uint8_t>();
  if (in.ok() && version > kVersion) {
    return Status(Code::kUnsupported,
                  fmt::format("read a schema: it has version {} and this program knows up to {}; "
                              "use a newer Sonde",
                              version, kVersion));
  }
  std::vector<Series> series;
  const size_t count = in.Count(kMinSeriesBytes, kMaxSeries);
  for (size_t i = 0; i < count && in.ok(); ++i) series.push_back(ReadSeries(in));
  if (version == kVersion && in.done()) {
    Ptr schema = Make(std::move(series));
    // Numbers have more than one encoding; only ours gives the id by which blocks know the schema.
    if (schema->encoded() == bytes) return schema;
  }
  return Status(Code::kCorrupt,
                fmt::format("read a schema of {} bytes: it is damaged", bytes.size()));
}

Result<Schema::Ptr> SchemaCache::Decode(std::string_view bytes) {
  for (const Schema::Ptr& known : recent_) {
    if (known->encoded() == bytes) return known;
  }
  Result<Schema::Ptr> schema = Schema::Decode(bytes);
  if (!schema.ok()) return schema;
  if (recent_.size() == kMost) recent_.erase(recent_.begin());
  recent_.push_back(*schema);
  return schema;
}

}  // namespace sonde
