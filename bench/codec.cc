// What the block codec costs: bytes per sample, encode and decode time per sample, memory.
//
//   bench_codec [FILE.csv]
//
// FILE is what bench/record.py writes: time in nanoseconds, then one column per series. Without it
// the data are synthetic: a machine's counters and gauges from a fixed seed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "series/block.h"

namespace sonde {
namespace {

struct Table {
  std::vector<Nanos> times;
  std::vector<std::vector<double>> columns;
};

Table ReadCsv(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  Table table;
  table.columns.resize(static_cast<size_t>(std::count(line.begin(), line.end(), ',')));
  while (std::getline(file, line)) {
    const char* at = line.c_str();
    char* end = nullptr;
    table.times.push_back(std::strtoll(at, &end, 10));
    for (auto& column : table.columns) {
      at = *end == ',' ? end + 1 : end;
      const double value = std::strtod(at, &end);
      column.push_back(end == at ? std::nan("") : value);
    }
  }
  return table;
}

// About 400 series over `rows` seconds in the shares that a real machine shows: 56 % constant, then
// counters of events, of time in hundredths and of bytes, gauges in pages, and a few messy floats.
Table Synthesise(size_t rows) {
  std::mt19937_64 random(4242);
  Table table;
  for (size_t r = 0; r < rows; ++r) {
    table.times.push_back(Nanos{1'795'232'000} * kSecond + static_cast<Nanos>(r) * kSecond);
  }
  const auto add = [&](size_t count, const std::function<std::function<double(size_t)>()>& make) {
    for (size_t i = 0; i < count; ++i) {
      const auto value = make();
      auto& column = table.columns.emplace_back();
      for (size_t r = 0; r < rows; ++r) column.push_back(value(r));
    }
  };
  add(224, [&] {
    const double v = random() % 2 ? 0 : static_cast<double>(random() % 100'000'000);
    return [v](size_t) { return v; };
  });
  add(70, [&] {  // event counters, many of them idle most of the time
    std::poisson_distribution<long> step(static_cast<double>(random() % 3 ? 0.05 : 700));
    return [&random, step, total = 0L](size_t) mutable {
      return static_cast<double>(total += step(random));
    };
  });
  add(30, [&] {  // processor time in hundredths of a second
    std::binomial_distribution<long> step(100, random() % 4 ? 0.03 : 0.9);
    return [&random, step, total = 0L](size_t) mutable {
      return static_cast<double>(total += step(random)) / 100;
    };
  });
  add(60, [&] {  // memory in pages
    std::normal_distribution<double> step(0, random() % 2 ? 3 : 400);
    const bool quiet = random() % 3 == 0;
    return [&random, step, quiet, pages = 1'000'000L](size_t) mutable {
      if (!quiet || random() % 16 == 0) pages += static_cast<long>(step(random));
      return static_cast<double>(pages) * 4096;
    };
  });
  add(8, [&] {  // loads and pressures: two decimals that move now and then
    return [&random, v = 100L](size_t) mutable {
      if (random() % 4 == 0) v = std::max(0L, v + static_cast<long>(random() % 21) - 10);
      return static_cast<double>(v) / 100;
    };
  });
  add(2, [&] {
    std::normal_distribution<double> noise(1, 0.01);
    return [&random, noise](size_t) mutable { return 240 * noise(random); };
  });
  return table;
}

using Clock = std::chrono::steady_clock;

// Nanoseconds of one call: the least of some runs, as others use the machine too.
double Time(int runs, const std::function<void()>& f) {
  double best = 1e300;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    f();
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  return best;
}

// Columns one after the other, as a block takes them.
std::vector<double> Flatten(const Table& table) {
  std::vector<double> flat;
  for (const auto& column : table.columns) flat.insert(flat.end(), column.begin(), column.end());
  return flat;
}

void Check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "codec: %s\n", what);
  std::exit(1);
}

void Measure(const Table& table, size_t block_rows, const std::string& suffix) {
  const std::vector<double> flat = Flatten(table);
  const size_t stride = table.times.size();
  BlockEncoder encoder;
  std::vector<std::string> blocks;
  size_t samples = 0;
  const auto encode = [&] {
    blocks.clear();
    samples = 0;
    for (size_t at = 0; at + block_rows <= stride; at += block_rows) {
      const std::span<const Nanos> times(table.times.data() + at, block_rows);
      Check(encoder
                .Encode(1, times, flat.data() + at, table.columns.size(), stride,
                        blocks.emplace_back())
                .ok(),
            "a block did not encode");
      samples += block_rows * table.columns.size();
    }
  };
  const double encode_ns = Time(20, encode);
  Check(samples > 0, "the data are shorter than one block");
  size_t bytes = 0;
  for (const std::string& block : blocks) bytes += block.size();
  const double decode_ns = Time(20, [&] {
    for (const std::string& block : blocks) Check(DecodeBlock(block).ok(), "a block is damaged");
  });
  const auto figure = [&](const char* name, double value, const char* unit) {
    std::printf("figure codec.%s%s %.4g %s\n", name, suffix.c_str(), value, unit);
  };
  const auto n = static_cast<double>(samples);
  figure("bytes_per_sample", static_cast<double>(bytes) / n, "bytes");
  figure("encode_ns", encode_ns / n, "ns");
  figure("decode_ns", decode_ns / n, "ns");
  figure("encoder_memory", static_cast<double>(encoder.MemoryUse()), "bytes");
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  const sonde::Table table = argc > 1 ? sonde::ReadCsv(argv[1]) : sonde::Synthesise(1024);
  std::printf("%zu samples of %zu series\n", table.times.size(), table.columns.size());
  sonde::Measure(table, 128, "");
  sonde::Measure(table, 512, "_512_rows");
  return 0;
}
