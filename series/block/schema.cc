#include "series/block/schema.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/bytes.h"
#include "core/text/hash.h"
#include "series/block/pack.h"
#include "series/block/series_bytes.h"

namespace sonde {
namespace {

// Never to change: the first byte of an encoded schema. 1 and 2 have each series whole; 2 added
// spreads and was written where there are any. They are read, and keep their ids.
constexpr uint8_t kPlainSchema = 1;
constexpr uint8_t kSpreads = 2;
constexpr uint8_t kSchemaVersion = 3;

// What comes over a link or from a file is not believed to be larger, with each series whole;
// kMaxSeries of the usual length are 8 MB.
constexpr size_t kMaxPlain = size_t{32} << 20;
// Of what is made, as WriteShared writes it: a message of a link takes it, however little of it can
// be compressed.
constexpr size_t kMaxEncoded = size_t{7} << 20;

bool AnySpread(const std::vector<Series>& series) {
  return std::any_of(series.begin(), series.end(), [](const Series& s) { return s.metric.spread; });
}

void WriteWhole(const std::vector<Series>& series, ByteWriter& out) {
  out.Fixed(AnySpread(series) ? kSpreads : kPlainSchema);
  out.Varint(series.size());
  for (const Series& s : series) WriteSeries(s, out);
}

// One series, and with how many bytes it begins like the one before it.
size_t WriteOne(const Series& series, std::string_view last, std::string& bytes) {
  bytes.clear();
  ByteWriter one(bytes);
  WriteSeries(series, one);
  const auto differ = std::mismatch(bytes.begin(), bytes.end(), last.begin(), last.end());
  return static_cast<size_t>(differ.first - bytes.begin());
}

// A text that begins like the one before it has the length of that beginning instead. The number
// of bytes without the beginnings.
size_t WriteShared(const std::vector<Series>& series, ByteWriter& out) {
  out.Fixed(kSchemaVersion);
  out.Varint(series.size());
  std::string last;
  std::string bytes;
  size_t plain = 0;
  for (const Series& s : series) {
    const size_t shared = WriteOne(s, last, bytes);
    out.Varint(shared);
    out.Text(std::string_view(bytes).substr(shared));
    plain += bytes.size();
    last.swap(bytes);
  }
  return plain;
}

// Turns `in` bad, too, on more than kMaxPlain.
std::vector<Series> ReadWhole(ByteReader& in) {
  const size_t count = in.left() > kMaxPlain ? 0 : in.Count(kMinSeriesBytes, kMaxSeries);
  std::vector<Series> series;
  for (size_t i = 0; i < count && in.ok(); ++i) series.push_back(ReadSeries(in));
  return series;
}

std::vector<Series> ReadShared(ByteReader& in) {
  constexpr size_t kLeast = 2;
  const size_t count = in.Count(kLeast, kMaxSeries);
  std::vector<Series> series;
  std::string bytes;
  size_t plain = 0;
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const uint64_t shared = in.Varint();
    const std::string_view rest = in.Text(kMaxPlain);
    plain += shared <= bytes.size() ? shared + rest.size() : kMaxPlain + 1;
    if (!in.ok() || plain > kMaxPlain) {
      in.Fail();
      break;
    }
    bytes.resize(shared);
    bytes.append(rest);
    ByteReader one(bytes);
    series.push_back(ReadSeries(one));
    if (!one.done()) in.Fail();
  }
  return series;
}

}  // namespace

Schema::Schema(std::vector<Series> series, bool whole) : series_(std::move(series)) {
  ByteWriter out(encoded_);
  if (whole) {
    WriteWhole(series_, out);
    text_bytes_ = encoded_.size();
  } else {
    text_bytes_ = WriteShared(series_, out);
  }
  encoded_.shrink_to_fit();
  id_ = Fnv1a64(encoded_);
}

Schema::Ptr Schema::Make(std::vector<Series> series) {
  return Ptr(new Schema(std::move(series), /*whole=*/false));
}

Result<Schema::Ptr> Schema::Decode(std::string_view bytes) {
  ByteReader in(bytes);
  const auto version = in.Fixed<uint8_t>();
  if (in.ok() && version > kSchemaVersion) {
    return Status(Code::kUnsupported,
                  fmt::format("read a schema: it has version {} and this program knows up to {}; "
                              "use a newer Sonde",
                              version, kSchemaVersion));
  }
  const bool whole = version < kSchemaVersion;
  std::vector<Series> series = whole ? ReadWhole(in) : ReadShared(in);
  if (in.done()) {
    Ptr schema(new Schema(std::move(series), whole));
    // Numbers have more than one encoding; only ours, which has the version too, gives the id that
    // blocks carry.
    if (schema->encoded() == bytes) return schema;
  }
  return Status(Code::kCorrupt,
                fmt::format("read a schema of {} bytes: it is damaged", bytes.size()));
}

bool SchemaRoom::Take(const Series& series) {
  constexpr size_t kLengths = 6;  // at most, of the beginning and the rest
  const size_t shared = WriteOne(series, last_, one_);
  const size_t encoded = encoded_ + one_.size() - shared + kLengths;
  if (series_ == kMaxSeries || encoded > kMaxEncoded || plain_ + one_.size() > kMaxPlain) {
    return false;
  }
  ++series_;
  plain_ += one_.size();
  encoded_ = encoded;
  last_.swap(one_);
  return true;
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
