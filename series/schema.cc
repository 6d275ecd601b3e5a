#include "series/schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/bytes.h"
#include "series/pack.h"
#include "series/series_bytes.h"

namespace sonde {
namespace {

// Never to change: the first byte of an encoded schema. 1 is written where no metric has its
// spread, which is what 2 added, so what has none keeps its id.
constexpr uint8_t kPlain = 1;
constexpr uint8_t kVersion = 2;

bool AnySpread(const std::vector<Series>& series) {
  return std::any_of(series.begin(), series.end(), [](const Series& s) { return s.metric.spread; });
}

// What comes over a link is not believed to be larger; kMaxSeries of the usual length are 8 MB.
constexpr size_t kMaxPlain = size_t{32} << 20;

// FNV-1a, 64 bits. Never to change: ids stand in blocks on disk.
uint64_t Hash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

Schema::Schema(std::vector<Series> series) : series_(std::move(series)) {
  ByteWriter out(encoded_);
  out.Fixed(AnySpread(series_) ? kVersion : kPlain);
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
  if (in.done()) {
    Ptr schema = Make(std::move(series));
    // Numbers have more than one encoding; only ours, which tells the version too, gives the id by
    // which blocks know the schema.
    if (schema->encoded() == bytes) return schema;
  }
  return Status(Code::kCorrupt,
                fmt::format("read a schema of {} bytes: it is damaged", bytes.size()));
}

std::string PackSchema(const Schema& schema) { return Pack(schema.encoded()); }

Result<Schema::Ptr> SchemaCache::Decode(std::string_view packed) {
  for (const Known& known : recent_) {
    if (known.packed == packed) return known.schema;
  }
  const Result<std::string> plain = Unpack(packed, kMaxPlain, "a packed schema");
  if (!plain.ok()) return plain.status();
  Result<Schema::Ptr> schema = Schema::Decode(*plain);
  if (!schema.ok()) return schema;
  if (recent_.size() == kMost) recent_.erase(recent_.begin());
  recent_.push_back({std::string(packed), *schema});
  return schema;
}

}  // namespace sonde
