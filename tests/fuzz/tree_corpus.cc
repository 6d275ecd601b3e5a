// Writes the starting inputs of fuzz_tree, fuzz_trust and fuzz_head_state: tree_corpus
// tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/head/registry/head_state.h"
#include "daemon/message/message.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/moments_message.h"
#include "series/block/schema.h"
#include "series/query/part.h"

namespace sonde::tree {
namespace {

namespace fs = std::filesystem;

// The first byte chooses what fuzz_tree does with the rest.
void Save(const fs::path& folder, const char* name, int choice, const std::string& bytes) {
  std::ofstream(folder / name, std::ios::binary) << static_cast<char>(choice) << bytes;
}

void SaveMessages(const fs::path& folder) {
  const std::string key(32, 'k');
  const std::string schema = PackSchema(*Schema::Make({Series{}}));
  const Registration registration{"4711", "0", 1, 2, 8, "n2", "s0.s4", 1};
  std::string query;
  EncodeQuery(QuerySpec{}, query);
  std::string grid;
  EncodeGrid({kSecond, {1, 2, 3}}, grid);
  Save(folder, "hello", 0, Encode(Hello{2, key}));
  Save(folder, "registration", 2, Encode(registration));
  Save(folder, "welcome", 4, Encode(Welcome{1, 16, 1'800'000'000'000'000'000}));
  Save(folder, "successors", 5,
       Encode(Successors{{{0, "10.0.0.2", 40000}, {7, "fe80::1", 40001}}}));
  Save(folder, "listening", 5, Encode(Listening{"tcp:127.0.0.1:60000", ""}));
  Save(folder, "parent", 6, Encode(ParentAddress{0, "tcp:127.0.0.1:60000"}));
  Save(folder, "bye", 7, Encode(Bye{256, 4, 1, 10, 2, 0.5, 2e6, 4096, true, 1'800'000'000}));
  Save(folder, "exits", 3, Encode(Exits{{{3, 256}, {7, 9}}, 2}));
  Save(folder, "block", 8,
       Encode(BlockMessage{1, "os", 3, 2, 128, 1, 4096, false, schema, "block"}));
  Save(folder, "ack", 9, Encode(BlockAck{1, "os", 3, BlockAck::kRefused}));
  Save(folder, "budget", 19, Encode(BlockBudget{6400, 400, 3200}));
  Save(folder, "query", 10, Encode(QueryMessage{7, query, grid, 1500}));
  Save(folder, "reply", 11, Encode(ReplyMessage{7, 2, 0, "", "part"}));
  Save(folder, "refusal", 11, Encode(ReplyMessage{7, 2, 7, "too many points", ""}));
  Save(folder, "answered", 1, Encode(AnsweredMessage{7, std::string("\1\0\1", 3)}));
  Save(folder, "ask", 16, Encode(AskMessage{9, 3, query}));
  Save(folder, "answer", 17, Encode(AnswerMessage{9, 66, "body"}));
  Save(folder, "exporter", 17,
       Encode(JoinedMessage{"http://n1:9100/metrics 1000", JoinedMessage::kDown, "Prometheus",
                            "http://n1:9100/metrics", "connection refused"}));
  // Its upper half is the type of the message: 18 is 1, kHello, and chooses 18 of 20.
  Save(folder, "handshake", 18, Encode(Hello{2, key}));
}

// Values of no node, of one and of many, and what changes from one frame to the next.
void SaveFrames(const fs::path& folder) {
  Frame frame;
  frame.number = 1;
  frame.tick = kSecond;
  frame.stream = Stream::kChildren;
  for (const uint32_t node : {0u, 1u, 2u, 9u}) frame.nodes.Add(NodeSet(node));
  frame.values.resize(8);
  for (uint32_t i = 1; i < frame.values.size(); ++i) {
    for (uint32_t node = 0; node < (i < 4 ? 1u : 3u); ++node) {
      frame.values[i].Add(i * 0.5 + node, Owner{node, i});
    }
  }
  const auto save = [&](const char* name, FrameEncoder& encoder) {
    std::string bytes;
    encoder.Encode(frame, {frame.values, frame.spreads}, bytes);
    Save(folder, name, 12, bytes);
  };
  // As the fuzzer's: every second one has its spread, and the last three are counters.
  std::vector<Series> series(frame.values.size());
  for (size_t i = 0; i < series.size(); ++i) {
    series[i].metric.spread = i % 2 == 1;
    if (i > 4) series[i].metric.type = MetricType::kCounter;
  }
  const Schema::Ptr schema = Schema::Make(std::move(series));
  frame.spreads.resize(4);
  frame.spreads[2].Add(0.25);
  for (int i = 0; i < 9; ++i) frame.spreads[3].Add(1.5 * i);
  FrameEncoder encoder;
  encoder.Reset(*schema);
  save("frame", encoder);
  for (Reduced& v : frame.values) v.Merge(v);
  save("frame_merged", encoder);
  for (Reduced& v : frame.values) v.Merge(v);
  save("frame_grown", encoder);
  frame.stream = Stream::kEnded;
  frame.lost = true;
  frame.nodes = NodeSet(7);
  encoder.Reset(*schema);
  save("frame_lost", encoder);
  frame.stream = Stream::kOwn;
  frame.lost = false;
  for (uint32_t i = 0; i < frame.values.size(); ++i) {
    frame.values[i] = Reduced();
    frame.values[i].Add(i * 1000.0, Owner{7, Owner::kNobody});
  }
  encoder.Reset(*schema);
  save("frame_own", encoder);
}

// Every kind of annotation, and histograms with tags and without.
void SaveMoments(const fs::path& folder) {
  collect::Moments moments;
  for (const auto kind : {AnnotationKind::kRemark, AnnotationKind::kPhaseBegin,
                          AnnotationKind::kPhaseEnd, AnnotationKind::kFigure}) {
    Annotation a;
    a.kind = kind;
    a.text = "solve";
    a.unit = "cells/s";
    a.value = 0.5;
    a.first = 1'800'000'000 * kSecond;
    a.last = a.first + 1000;
    a.count = 4;
    moments.annotations.push_back(std::move(a));
  }
  for (const char* call : {"", "recv"}) {
    NamedSketch& one = moments.sketches.emplace_back();
    one.series.metric.name = "wait_seconds";
    one.series.metric.unit = "seconds";
    one.series.metric.type = MetricType::kHistogram;
    if (*call != 0) one.series.tags = {{"call", call}};
    one.sketch.Add(700, 3);
    one.sketch.Add(900, 500);
    one.sketch.AddSum(1.5, 0.001, 0.5);
  }
  MomentsMessage message{7, {}};
  Merge(moments, message.moments);
  Save(folder, "moments", 14, Encode(message));
  Save(folder, "moments_ack", 15, Encode(MomentsAck{MomentsAck::Fate::kSafe, {1, 300}}));
}

void SaveLaunch(const fs::path& folder) {
  Save(folder, "launch", 13,
       "role=node\nkey=" + std::string(64, 'a') +
           "\nuid=1000\njob=4711\nstep=0\nnodes=2\ntasks=8\nlocal_tasks=4\nnode_id=1\n"
           "job_nodes=2\nhost=n2\nhead_host=127.0.0.1\nhead_port=60000\nsocket=sonde/1000/4711.0\n"
           "level=2\nperiod=1000000000\nevents=cycles\ncommand=./app -t 8\nconfig=/etc/s.conf\n");
}

// The second byte is the message's type, where that matters.
void SaveTrust(const fs::path& folder) {
  const std::string key(32, 'k'), proof(32, 'p');
  const std::string offer = Encode(Offer{2, key, 5, 2, proof});
  const std::string entry = Encode(Entry{std::string(80, 'e')});
  const std::string any(1, '\0');
  Save(folder, "offer", 0, any + offer);
  Save(folder, "entry", 1, any + entry);
  Save(folder, "offered", 2, char(Type::kOffer) + offer);
  Save(folder, "entered", 3, any + entry);
  Save(folder, "entered_by_a_later_one", 3, char(1) + entry);
  Save(folder, "not_sealed", 4, char(Type::kFrame) + std::string("frame"));
  Save(folder, "badly_sealed", 4, char(Type::kSealed) + std::string(40, 's'));
  Save(folder, "sealed", 5, char(Type::kFrame) + std::string("frame"));
}

void SaveHeadState(const fs::path& folder) {
  head::HeadState state;
  state.row = 1'800'000'000 * kSecond;
  state.byes = 1;
  state.schema = Schema::Make({Series{}});
  Frame frame;
  frame.number = 1;
  frame.tick = state.row;
  frame.stream = Stream::kEnded;
  frame.nodes = NodeSet(3);
  frame.values.resize(1);
  frame.values[0].Add(7, {3, 1});
  state.ended.push_back(head::EncodeLastValues(frame, *state.schema));
  std::ofstream(folder / "state", std::ios::binary) << Encode(state);
}

}  // namespace
}  // namespace sonde::tree

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tree_corpus FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = std::filesystem::path(argv[1]) / "fuzz_tree";
  const std::filesystem::path states = std::filesystem::path(argv[1]) / "fuzz_head_state";
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(states);
  const std::filesystem::path trust = std::filesystem::path(argv[1]) / "fuzz_trust";
  std::filesystem::create_directories(trust);
  sonde::tree::SaveTrust(trust);
  sonde::tree::SaveHeadState(states);
  sonde::tree::SaveMessages(folder);
  sonde::tree::SaveFrames(folder);
  sonde::tree::SaveMoments(folder);
  sonde::tree::SaveLaunch(folder);
  return 0;
}
