// Writes the starting inputs of fuzz_ask: ask_corpus tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/head/answers/answer_bytes.h"
#include "libclient/ask/bytes.h"
#include "libclient/ask/layout.h"

namespace sonde {
namespace {

namespace fs = std::filesystem;

// The first byte chooses what fuzz_ask does with the rest.
void Save(const fs::path& folder, const char* name, char choice, std::string_view bytes) {
  std::ofstream(folder / name, std::ios::binary) << choice << bytes;
}

void SaveRequests(const fs::path& folder) {
  const client::AskHello hello = {client::kAskMagic, client::kAskVersion, 0};
  Save(folder, "hello", 0, {reinterpret_cast<const char*>(&hello), sizeof hello});
  client::Bytes query;
  query.Text("heat_residual");
  query.Text("max");
  query.Text("10s-avg-nan");
  query.Fixed<uint8_t>(client::kRate | client::kRateCounter);
  query.Varint(2);
  for (const char* type : {"wildcard", "not_literal_or"}) {
    query.Text(type);
    query.Text("host");
    query.Text(*type == 'w' ? "n*" : "n1|n2");
    query.Fixed<uint8_t>(*type == 'w' ? 1 : 0);
  }
  query.Signed(kSecond);
  query.Signed(60 * kSecond);
  Save(folder, "query", 1, query.view());
  Save(folder, "subscription", 2, query.view());
  client::Bytes list;
  list.Text("heat_residual");
  Save(folder, "list", 3, list.view());
}

void SaveAnswers(const fs::path& folder) {
  web::Answer answer;
  answer.nodes_answered = answer.nodes_expected = 4;
  for (const char* host : {"n1", "n2"}) {
    answer.results.push_back({"heat_residual",
                              Tags{{"host", host}, {"job", "7.0"}},
                              {"task"},
                              {{kSecond, 1.5}, {2 * kSecond, 2.5}, {4 * kSecond, -1}}});
  }
  Save(folder, "answer", 4, head::EncodeAnswer(answer, false));
  Series series;
  series.metric.name = "heat_steps_total";
  series.metric.unit = "1";
  series.metric.help = "Time steps";
  series.metric.type = MetricType::kCounter;
  series.tags = {{"kind", "x"}};
  Save(folder, "listing", 5, head::EncodeListing({series, series}));
}

void SaveConditions(const fs::path& folder) {
  Save(folder, "condition", 6, "heat_residual max > 10 for 3s");
  Save(
      folder, "long_condition", 6,
      "io_bytes_total{phase=read|write,device!=sda,fs=/s*} sum rate by host,task <= -2.5e3 for 1m");
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: ask_corpus FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = std::filesystem::path(argv[1]) / "fuzz_ask";
  std::filesystem::create_directories(folder);
  sonde::SaveRequests(folder);
  sonde::SaveAnswers(folder);
  sonde::SaveConditions(folder);
  return 0;
}
