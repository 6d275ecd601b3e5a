// Writes blocks and what is in them, for decoders in other languages:
//
//   block_samples FOLDER
//
// NAME.block is a block; NAME.values its rows and columns (8 bytes each), then the times, then the
// values column after column, as they lie in memory.
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "series/block/block.h"

namespace sonde {
namespace {

using Random = std::mt19937_64;

std::vector<double> Column(size_t rows, uint64_t shape, Random& random) {
  std::vector<double> column;
  double value = static_cast<double>(random() % 1'000'000);
  for (size_t r = 0; r < rows; ++r) {
    column.push_back(value);
    if (shape == 0) value += static_cast<double>(random() % 3);
    if (shape == 1) value += static_cast<double>(random() % 10'000'000);
    if (shape == 2) value = std::round(value * 100 + static_cast<double>(random() % 9)) / 100;
    if (shape == 3) value = static_cast<double>(random() % 5000) * 4096;
    if (shape == 4) value = std::bit_cast<double>(random());
    if (shape == 5) value += 1000 + static_cast<double>(random() % 10);
    if (shape == 6) value = static_cast<double>(static_cast<float>(value) * 1.01F);
    if (shape == 7) value = value < 0 ? 0.0 : -0.0;
  }
  return column;
}

void Save(const std::string& path, const std::vector<Nanos>& times,
          const std::vector<double>& values) {
  const uint64_t rows = times.size();
  const uint64_t columns = values.size() / rows;
  BlockEncoder encoder;
  std::string bytes;
  if (!encoder.Encode(rows * 1'000'003, times, values.data(), columns, rows, bytes).ok()) {
    std::fprintf(stderr, "block_samples: cannot encode %s\n", path.c_str());
    std::exit(1);
  }
  std::ofstream(path + ".block", std::ios::binary) << bytes;
  std::ofstream out(path + ".values", std::ios::binary);
  const auto write = [&](const void* data, size_t size) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  };
  write(&rows, sizeof rows);
  write(&columns, sizeof columns);
  write(times.data(), times.size() * sizeof(Nanos));
  write(values.data(), values.size() * sizeof(double));
}

void SaveRandom(const std::string& path, size_t rows, size_t columns, Random& random) {
  std::vector<Nanos> times;
  Nanos time = 1'795'232'000 * kSecond;
  for (size_t r = 0; r < rows; ++r) {
    times.push_back(time);
    time += kSecond + (random() % 4 == 0 ? static_cast<Nanos>(random() % 1'000'000) : 0);
  }
  std::vector<double> values;
  const size_t every = 2 + random() % 9;
  for (size_t c = 0; c < columns; ++c) {
    std::vector<double> column = Column(rows, random() % 9, random);
    if (c > 1 && random() % 3 == 0) {  // made of two others
      const size_t a = random() % c * rows;
      const size_t b = random() % c * rows;
      for (size_t r = 0; r < rows; ++r) column[r] = values[a + r] - values[b + r];
    } else if (random() % 3 == 0) {  // one of few patterns of gaps
      for (size_t r = 0; r < rows; ++r) {
        if (r % every != 0) column[r] = std::nan("");
      }
    }
    values.insert(values.end(), column.begin(), column.end());
  }
  Save(path, times, values);
}

void SaveAll(const std::string& folder) {
  using Limits = std::numeric_limits<double>;
  Random random(7);
  Save(folder + "/extremes", {-5, -5, 0, Limits::max_digits10},
       {Limits::max(),
        Limits::lowest(),
        Limits::denorm_min(),
        -Limits::denorm_min(),
        Limits::infinity(),
        -Limits::infinity(),
        0.0,
        -0.0,
        Limits::quiet_NaN(),
        std::bit_cast<double>(uint64_t{0x7ff8000000000001}),
        1,
        2,
        std::nan(""),
        std::nan(""),
        std::nan(""),
        std::nan(""),
        4611686018427387904.0,
        -9223372036854775808.0,
        0.1,
        1e300});
  for (int i = 0; i < 40; ++i) {
    const size_t rows = 1 + random() % (i % 4 == 0 ? 512 : 64);
    SaveRandom(folder + "/random" + std::to_string(i), rows, random() % 60, random);
  }
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: block_samples FOLDER\n");
    return 2;
  }
  sonde::SaveAll(argv[1]);
  return 0;
}
