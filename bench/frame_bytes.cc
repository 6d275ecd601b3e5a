// How large a frame gets by the number of nodes it is of: what comes into any node of the tree, the
// head included, is the frames of its children, one and a merged one each.
//
// The nodes' values are samples of this machine at level 2, each node at another moment of them and
// each of its values by up to a tenth larger, so that no two nodes' are the same and all the series
// that ever change on one change somewhere at every tick. usage: bench_frame_bytes
#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "core/time.h"
#include "daemon/node/record/recorder.h"
#include "daemon/tree/frame.h"

namespace sonde::tree {
namespace {

constexpr size_t kSamples = 40;
constexpr auto kBetween = std::chrono::milliseconds(250);
constexpr Nanos kFirstTick = 1'700'000'000 * kSecond;

struct Sample {
  std::vector<Reduced> values;
  std::vector<QuantileSketch> spreads;
};

class Recording {
 public:
  Recording() : recorder_(Options(), 8u << 20, 0, 1) {
    for (size_t i = 0; i < kSamples; ++i) {
      recorder_.Sample(kFirstTick + static_cast<Nanos>(i) * kSecond);
      const FrameValues frame = recorder_.reduced_frame();
      samples_.push_back({{frame.values.begin(), frame.values.end()},
                          {frame.spreads.begin(), frame.spreads.end()}});
      std::this_thread::sleep_for(kBetween);
    }
  }
  const Schema& schema() const { return *recorder_.reduced_schema(); }
  const Sample& At(uint64_t i) const { return samples_[i % kSamples]; }

 private:
  static collect::Sampler::Options Options() {
    collect::Sampler::Options options;
    options.level = 2;
    return options;
  }
  node::Recorder recorder_;
  std::vector<Sample> samples_;
};

double ScaleOf(uint64_t node, uint64_t series) {
  uint64_t mixed = (node + 1) * 0x9e3779b97f4a7c15u + series * 0xbf58476d1ce4e5b9u;
  mixed ^= mixed >> 31;
  return 1 + static_cast<double>(mixed % 1000) / 10'000;
}

void Fill(const Recording& recording, uint32_t nodes, uint64_t tick, Frame& frame) {
  const size_t series = recording.schema().size();
  frame.tick = kFirstTick + static_cast<Nanos>(tick) * kSecond;
  frame.stream = nodes == 1 ? Stream::kOwn : Stream::kChildren;
  frame.values.assign(series, Reduced());
  frame.spreads = recording.At(tick).spreads;
  frame.nodes.Clear();
  for (uint32_t n = 0; n < nodes; ++n) {
    frame.nodes.Add(NodeSet(n));
    const Sample& sample = recording.At(tick + 7 * n);
    for (size_t i = 0; i < series; ++i) {
      Reduced value = sample.values[i];
      const double scale = ScaleOf(n, i);
      value.sum *= scale;
      value.min *= scale;
      value.max *= scale;
      value.sum_sq *= scale * scale;
      if (value.count > 0) value.min_owner.node = value.max_owner.node = n;
      frame.values[i].Merge(value);
    }
    for (size_t s = 0; s < frame.spreads.size() && n > 0; ++s) {
      frame.spreads[s].Merge(sample.spreads[s]);
    }
  }
}

double BytesOfFrame(const Recording& recording, uint32_t nodes, uint64_t ticks) {
  FrameEncoder encoder;
  encoder.Reset(recording.schema());
  Frame frame;
  std::string bytes;
  size_t first = 0;  // which has everything
  for (uint64_t tick = 0; tick <= ticks; ++tick) {
    Fill(recording, nodes, tick, frame);
    frame.number = tick + 1;
    encoder.Encode(frame, {frame.values, frame.spreads}, bytes);
    if (tick == 0) first = bytes.size();
  }
  return static_cast<double>(bytes.size() - first) / static_cast<double>(ticks);
}

int Main() {
  const Recording recording;
  fmt::print("figure frame_bytes.series {} 1\n", recording.schema().size());
  for (const uint32_t nodes : {1u, 4u, 16u, 64u, 256u, 1024u, 4096u, 16384u}) {
    const uint64_t ticks = nodes > 1024 ? 6 : 30;
    fmt::print("figure frame_bytes.of_{}_nodes {:.0f} bytes\n", nodes,
               BytesOfFrame(recording, nodes, ticks));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace sonde::tree

int main() { return sonde::tree::Main(); }
