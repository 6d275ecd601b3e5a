// Runs a fuzzer's function without libFuzzer: every file of the corpus folders given, then a
// bounded number of mutations of them from a fixed seed. So each decoder is exercised in every test
// run.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kMutations = 20'000;

std::vector<std::string> ReadCorpus(int argc, char** argv) {
  std::vector<std::string> inputs = {""};
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) continue;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  return inputs;
}

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

std::string Mutate(std::string text, std::mt19937_64& random) {
  const int steps = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < steps; ++i) {
    const size_t at = text.empty() ? 0 : random() % text.size();
    switch (random() % 5) {
      case 0:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 1:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      case 2:
        if (!text.empty()) text.erase(at, 1 + random() % 8);
        break;
      case 3:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
        break;
      default:
        text.insert(at, text.substr(at, random() % 32));
        break;
    }
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> corpus = ReadCorpus(argc, argv);
  for (const std::string& input : corpus) Run(input);
  std::mt19937_64 random(20261121);
  for (int i = 0; i < kMutations; ++i) Run(Mutate(corpus[random() % corpus.size()], random));
  std::printf("%zu inputs and %d mutations\n", corpus.size(), kMutations);
  return 0;
}
