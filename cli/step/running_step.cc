#include "cli/step/running_step.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "serve/head_client.h"

namespace sonde::cli {

Result<std::string> AskRunning(const Archive& archive, const std::string& target, Nanos patience,
                               ProfileEntry& entry) {
  constexpr Nanos kLongestPause = 320 * kMillisecond;
  Nanos pause = 20 * kMillisecond;
  const Nanos deadline = Clock::System().Monotonic() + patience;
  Result<std::string> answer =
      Status(Code::kUnavailable, "it does not say where it can be reached");
  if (entry.endpoint.port == 0) return answer;
  while (true) {
    // A head that ends takes its endpoint away a moment before the step counts as ended.
    if (entry.endpoint.port != 0) {
      const Nanos left = deadline - Clock::System().Monotonic();
      answer = serve::AskHead(entry.endpoint, target, left);
      if (answer.status().code() != Code::kUnavailable) return answer;
    }
    auto now = archive.Entry(entry.key);
    if (!now.ok()) return now.status();
    entry = *std::move(now);
    if (!entry.running) return Status(Code::kNotFound, "it has ended");
    if (Clock::System().Monotonic() + pause >= deadline) return answer;
    std::this_thread::sleep_for(std::chrono::nanoseconds(pause));
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace sonde::cli
