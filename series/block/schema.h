// The schema of a group: which series its rows hold, in column order.
//
// A source describes its series once and again when they change (a device appears, a task starts).
// Frames and blocks carry only the schema's id; the schema itself goes over a link and into a
// profile once. The id is a hash of the encoded schema, so equal schemas of different nodes have
// one id.
//
// Thread safety: a schema is immutable once made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/metric.h"
#include "core/status.h"

namespace sonde {

inline constexpr size_t kMaxSeries = 65536;

class Schema {
 public:
  using Ptr = std::shared_ptr<const Schema>;

  static Ptr Make(std::vector<Series> series);
  // Fails with kCorrupt on anything Encode could not have written.
  static Result<Ptr> Decode(std::string_view bytes);

  uint64_t id() const { return id_; }
  size_t size() const { return series_.size(); }
  const std::vector<Series>& series() const { return series_; }
  const Series& operator[](size_t i) const { return series_[i]; }
  const std::string& encoded() const { return encoded_; }
  // Bytes of names, units, help and tags.
  size_t text_bytes() const { return text_bytes_; }
  // Its memory in bytes, roughly: the encoded form, and the decoded strings and vectors.
  size_t memory() const {
    return encoded_.size() + text_bytes_ + series_.size() * (sizeof(Series) + 64);
  }

 private:
  Schema(std::vector<Series> series, bool whole);

  std::vector<Series> series_;
  std::string encoded_;
  size_t text_bytes_ = 0;
  uint64_t id_ = 0;
};

// What a schema may hold that grows series by series: kMaxSeries of them, and no more bytes than go
// over a link in one message and are believed of a file.
class SchemaRoom {
 public:
  // Takes the series' place after those before it; false, and nothing is taken, if it has none.
  bool Take(const Series& series);

 private:
  size_t series_ = 0;
  size_t plain_ = 0;
  size_t encoded_ = 0;
  std::string last_;
  std::string one_;
};

// A schema as it goes over a link: encoded and compressed, as help texts and names are much alike.
std::string PackSchema(const Schema& schema);

// Unpacks and decodes schemas. One of the last few costs no work when it comes again: the nodes of
// a step have the same schemas. Not thread-safe.
class SchemaCache {
 public:
  Result<Schema::Ptr> Decode(std::string_view packed);

 private:
  static constexpr size_t kMost = 32;
  struct Known {
    std::string packed;
    Schema::Ptr schema;
  };
  std::vector<Known> recent_;  // the newest last
};

}  // namespace sonde
