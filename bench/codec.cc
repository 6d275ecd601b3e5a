// What the block codec costs: bytes per value that is there, CPU time to encode and decode one, to
// decode one series of all, and the encoder's memory. What comes back is compared bit for bit.
//
//   bench_codec [FILE.csv]
//
// FILE has a time in nanoseconds, then one column per series; an empty field is missing. See
// bench/codec_record.sh. Without it the data are synthetic: a machine's counters and gauges from a
// fixed seed, no two of them related.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "series/block/block.h"

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

// CPU time of this thread: others use the machine too.
double CpuNanos() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

constexpr int kTurns = 31;

// One thing that is timed, in turn with others.
struct Timed {
  const char* name;
  double per;  // of how many a run is
  std::function<void()> run;
  std::vector<double> spent{};

  void Print(const std::string& suffix) {
    std::sort(spent.begin(), spent.end());
    const auto quantile = [&](size_t n) { return spent[spent.size() * n / 4] / per; };
    std::printf("figure codec.%s%s %.4g ns\n", name, suffix.c_str(), quantile(2));
    std::printf("  quartiles %.4g to %.4g ns, least %.4g, of %d turns\n", quantile(1), quantile(3),
                spent[0] / per, kTurns);
  }
};

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

void ExpectSame(const Block& block, const std::vector<double>& flat, size_t stride, size_t at) {
  for (size_t c = 0; c < block.columns(); ++c) {
    const auto column = block.Column(c);
    Check(std::memcmp(column.data(), &flat[c * stride + at], column.size_bytes()) == 0,
          "a value came back changed");
  }
}

void Measure(const Table& table, size_t block_rows, const std::string& suffix) {
  const std::vector<double> flat = Flatten(table);
  const size_t stride = table.times.size();
  const size_t columns = table.columns.size();
  const size_t count = stride / block_rows;
  Check(count > 0, "the data are shorter than one block");
  BlockEncoder encoder;
  std::vector<std::string> blocks(count);
  const auto encode = [&] {
    for (size_t i = 0; i < count; ++i) {
      const std::span<const Nanos> times(&table.times[i * block_rows], block_rows);
      blocks[i].clear();
      Check(encoder.Encode(1, times, &flat[i * block_rows], columns, stride, blocks[i]).ok(),
            "a block did not encode");
    }
  };
  encode();
  size_t bytes = 0;
  size_t present = 0;
  for (size_t i = 0; i < count; ++i) {
    bytes += blocks[i].size();
    const Result<Block> block = DecodeBlock(blocks[i]);
    Check(block.ok(), "a block is damaged");
    ExpectSame(*block, flat, stride, i * block_rows);
    for (const double v : block->values) present += std::isnan(v) ? 0 : 1;
  }
  std::vector<bool> one(columns);
  size_t next = 0;
  const auto n = static_cast<double>(present);
  Timed timed[] = {{"encode_ns", n, encode},
                   {"decode_ns", n,
                    [&] {
                      for (const std::string& block : blocks) {
                        Check(DecodeBlock(block).ok(), "a block is damaged");
                      }
                    }},
                   {"one_series_of_a_block_ns", static_cast<double>(count), [&] {
                      for (const std::string& block : blocks) {
                        one.assign(columns, false);
                        one[(next += 37) % columns] = true;
                        Check(DecodeColumns(block, one).ok(), "a block is damaged");
                      }
                    }}};
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Timed& t : timed) {
      const double start = CpuNanos();
      t.run();
      t.spent.push_back(CpuNanos() - start);
    }
  }
  std::printf("figure codec.bytes_per_sample%s %.4f bytes\n", suffix.c_str(),
              static_cast<double>(bytes) / n);
  for (Timed& t : timed) t.Print(suffix);
  std::printf("figure codec.encoder_memory%s %zu bytes\n", suffix.c_str(), encoder.MemoryUse());
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  const sonde::Table table = argc > 1 ? sonde::ReadCsv(argv[1]) : sonde::Synthesise(1024);
  std::printf("%zu rows of %zu series\n", table.times.size(), table.columns.size());
  sonde::Measure(table, 128, "");
  sonde::Measure(table, 512, "_512_rows");
  return 0;
}
