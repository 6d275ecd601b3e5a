// Writes the starting inputs of the series fuzzers: series_corpus tests/fuzz/corpus
#include <zstd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "core/histogram_buckets.h"
#include "series/block/block.h"
#include "series/block/format.h"
#include "series/block/joined.h"
#include "series/query/part.h"
#include "series/query/query.h"
#include "series/sketch/quantile_sketch.h"
#include "series/sketch/sketch.h"

namespace sonde {
namespace {

namespace fs = std::filesystem;

void Save(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

void SaveBlock(const fs::path& folder, const std::string& name, const std::vector<double>& values,
               size_t rows) {
  std::vector<Nanos> times;
  for (size_t r = 0; r < rows; ++r) {
    times.push_back(static_cast<Nanos>(r) * kSecond + static_cast<Nanos>(r / 3));
  }
  BlockEncoder encoder;
  std::string block;
  const size_t columns = values.size() / rows;
  if (!encoder.Encode(1, times, values.data(), columns, rows, block).ok()) return;
  Save(folder / name, block);
  // The same with what its frame holds, as fuzz_block reads it: the schema id tells how many of the
  // last bytes are low bits.
  const auto header = *block_format::ReadHeader(block);
  const std::string body = block.substr(block_format::kHeaderSize);
  std::string plain(header.plain_size, '\0');
  ZSTD_decompress(plain.data(), plain.size(), body.data(), header.frame_size);
  const std::string low = body.substr(header.frame_size);
  block.resize(block_format::kHeaderSize);
  block[4] = static_cast<char>(low.size());
  Save(folder / (name + "_plain"), block + plain + low);
}

// A column of every kind and scale; some that are made of others, with and without gaps.
void SaveBlocks(const fs::path& folder) {
  const double missing = std::nan("");
  SaveBlock(folder, "every_scale",
            {7,       7,     7,    7,    4096,    8192,    12288,   4096,    10,
             20,      40,    80,   0.25, 0.5,     0.75,    1.25,    M_PI,    M_E,
             M_SQRT2, M_LN2, 1,    5,    missing, 7,       missing, 0.125,   0.5,
             missing, M_PI,  M_PI, M_PI, M_PI,    missing, missing, missing, missing},
            4);
  constexpr size_t kRows = 24;
  std::vector<double> values;
  uint32_t noise = 1;
  for (size_t c = 0; c < 10; ++c) {
    for (size_t r = 0; r < kRows; ++r) {
      noise = noise * 1664525 + 1013904223;
      const double before = r == 0 ? 0 : values.back();
      const double a = c == 0 ? 0 : values[r];
      const double kinds[] = {noise % 10'000'019 * 1.0,
                              a * 4096 + 12,
                              before + 1000 + noise % 3,
                              1e9 + noise % 50,
                              before + static_cast<double>(r),
                              a - (c > 1 ? values[kRows + r] : 0),
                              r % 5 == 0 ? missing : noise % 100'003 / 100.0,
                              r % 5 == 0 || c < 7 ? missing : values[6 * kRows + r] + 1,
                              std::ldexp(1.0 + noise % 999, -40),
                              a * 2};
      values.push_back(c == 0 ? noise % 1'000'003 : kinds[c]);
    }
  }
  SaveBlock(folder, "every_kind", values, kRows);
}

void SaveSchemas(const fs::path& folder) {
  Series s;
  s.metric.name = "disk_read_bytes_total";
  s.metric.unit = "bytes";
  s.metric.help = "Bytes read.";
  s.metric.type = MetricType::kCounter;
  s.tags = {{"device", "vda"}, {"host", "n1"}};
  Save(folder / "empty", Schema::Make({})->encoded());
  Save(folder / "two", Schema::Make({s, Series{}})->encoded());
  Save(folder / "one", Schema::Make({s})->encoded());
  Series other = s;
  other.tags.Set("host", "n2");
  Save(folder / "alike", Schema::Make({s, other, other})->encoded());
  Save(folder / "whole", std::string("\x01\x01\x05load1\0\0\0\x01\0\0", 14));
  Save(folder / "packed", PackSchema(*Schema::Make({s})));
}

// What two hosts have, as fuzz_query reads it: which tags and how many points, then these.
std::string SeriesBytes() {
  std::string bytes;
  ByteWriter out(bytes);
  for (const uint8_t shape : {0x31, 0x33, 0x35}) {
    out.Fixed(shape);
    for (const auto& [time, value] : {std::pair{2, 0.1}, {5, 1e300}, {40, 2.0}}) {
      out.Signed(time * kSecond + (shape == 0x35 ? 1 : 0));
      out.Fixed(value);
    }
  }
  return bytes;
}

// The sum of numbers that a double cannot hold, of hosts with other times.
QueryPart PartOf(const QuerySpec& spec, const QueryGrid& grid) {
  std::vector<SeriesData> series;
  for (const char* host : {"a", "b"}) {
    SeriesData& data = series.emplace_back();
    data.series.metric.name = "m";
    data.series.tags = {{"host", host}, {"device", host}};
    data.points = {{2 * kSecond, 0.1}, {5 * kSecond, 1e300}, {40 * kSecond + *host, 2.25}};
  }
  return *EvaluatePart(spec, std::move(series), &grid);
}

// As fuzz_joined reads them: the length of the list, the list, the block.
void SaveJoined(const fs::path& folder) {
  for (const size_t count : {1, 3, 40}) {
    std::vector<JoinedEntry> entries;
    std::vector<std::string> blocks;
    BlockEncoder encoder;
    for (size_t node = 0; node < count; ++node) {
      const std::vector<Nanos> times(1 + node % 2, 100 * kSecond - static_cast<Nanos>(node));
      std::vector<double> values;
      for (size_t i = 0; i < 5 * times.size(); ++i) values.push_back(static_cast<double>(i * node));
      std::string& block = blocks.emplace_back();
      if (!encoder.Encode(1, times, values.data(), 5, times.size(), block).ok()) return;
      JoinedEntry& entry = entries.emplace_back();
      entry.node = static_cast<uint32_t>(node);
      entry.group = "os";
      entry.first = 2;
      entry.sequence = 3;
      entry.samples = 90;
    }
    const std::vector<std::string_view> views(blocks.begin(), blocks.end());
    const auto joined = JoinBlocks(std::move(entries), views, encoder);
    if (!joined.ok()) return;
    const std::string block(ReadJoined(*joined)->block);
    const std::string list = joined->substr(0, joined->size() - block.size() - sizeof(uint32_t));
    std::string bytes;
    ByteWriter(bytes).Fixed(static_cast<uint16_t>(list.size()));
    Save(folder / ("of_" + std::to_string(count)), bytes + list + block);
  }
}

void SaveQueries(const fs::path& folder) {
  QuerySpec spec;
  spec.metric = "m";
  spec.start = kSecond;
  spec.end = 100 * kSecond;
  const QueryGrid grid{10 * kSecond, {3 * kSecond, 41 * kSecond}};
  const auto save = [&](const std::string& name) {
    std::string query;
    EncodeQuery(spec, query);
    std::string times;
    EncodeGrid(grid, times);
    std::string bytes;
    ByteWriter out(bytes);
    out.Text(query);
    out.Text(times);
    out.Text(*EncodePart(PartOf(spec, grid)));
    out.Raw(SeriesBytes());
    Save(folder / name, bytes);
  };
  for (const std::string_view name : AggregatorNames()) {
    spec.aggregator = *ParseAggregator(name);
    save(std::string(name));
  }
  spec.aggregator = Aggregator::kSum;
  spec.downsample = Downsample{10 * kSecond, Aggregator::kAvg, Downsample::Fill::kNan};
  spec.filters = {{TagFilter::Type::kRegexp, "host", "a|b", true},
                  {TagFilter::Type::kIWildcard, "host", "*", false},
                  {TagFilter::Type::kNotLiteralOr, "host", "c|d", false}};
  save("filters");
  spec.filters = {{TagFilter::Type::kNotKey, "task", "", false}};
  auto calendar = std::make_shared<Calendar>();
  calendar->edges = {0, 20 * kSecond, 101 * kSecond};
  spec.downsample->calendar = std::move(calendar);
  save("calendar");
  spec.downsample->calendar = nullptr;
  spec.filters.clear();
  spec.rate = true;
  save("rate");
}

// Every kind of bucket, and none.
void SaveSketches(const fs::path& folder) {
  Sketch sketch;
  const auto save = [&](const char* name) {
    std::string bytes;
    ByteWriter out(bytes);
    sketch.Encode(out);
    Save(folder / name, bytes);
  };
  save("empty");
  sketch.Add(histogram::BucketOf(0.25), 3);
  save("no_extremes");
  sketch.Add(histogram::kUnderflow, 1);
  sketch.Add(histogram::BucketOf(1000), 70'000);
  sketch.Add(histogram::kOverflow, 2);
  sketch.AddSum(1e15, -0.5, 4e14);
  save("every_kind");
}

// None, both signs at full resolution, and what needs coarse buckets.
void SaveQuantileSketches(const fs::path& folder) {
  QuantileSketch sketch;
  const auto save = [&](const char* name) {
    std::string bytes;
    ByteWriter out(bytes);
    sketch.Encode(out);
    Save(folder / name, bytes);
  };
  save("empty");
  for (const double value : {-3.5, 0.0, 1.0, 1.0, 1e6}) sketch.Add(value, 70);
  save("fine");
  for (int i = -1000; i < 1000; ++i) sketch.Add(std::ldexp(i % 2 == 0 ? 1.1 : -1.7, i));
  save("coarse");
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: series_corpus FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  sonde::SaveBlocks(folder / "fuzz_block");
  sonde::SaveJoined(folder / "fuzz_joined");
  sonde::SaveSchemas(folder / "fuzz_schema");
  sonde::SaveQueries(folder / "fuzz_query");
  sonde::SaveSketches(folder / "fuzz_sketch");
  sonde::SaveQuantileSketches(folder / "fuzz_quantile_sketch");
  return 0;
}
