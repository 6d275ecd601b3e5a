#include "profiles/records/card.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/bytes.h"
#include "core/text/names.h"
#include "profiles/json/writer.h"
#include "profiles/model/hardware.h"
#include "profiles/model/summary.h"

namespace sonde {
namespace {

constexpr uint8_t kCardVersion = 2;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// The numbers of states on disk.
constexpr std::array kStates = {EndState::kRunning,     EndState::kCompleted, EndState::kFailed,
                                EndState::kOutOfMemory, EndState::kCancelled, EndState::kLost,
                                EndState::kTimeout,     EndState::kPreempted, EndState::kNodeFail};

// Of a state that is not known.
constexpr uint8_t kUnknownState = 255;

uint8_t NumberOf(EndState state) {
  for (size_t i = 0; i < kStates.size(); ++i) {
    if (kStates[i] == state) return static_cast<uint8_t>(i);
  }
  return kUnknownState;
}

double Sum(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : a + b; }

std::array<double, kCardNumbers> NumbersOf(const Profile& profile, const Summary& s) {
  const HardwareSummary hardware = SummarizeHardware(profile);
  std::array<double, kCardNumbers> numbers{};
  numbers.fill(kMissing);
  const auto set = [&](CardNumber number, double value) {
    numbers[static_cast<size_t>(number)] = value;
  };
  set(CardNumber::kCpu, s.cpu_seconds);
  set(CardNumber::kCpuUser, s.cpu_user);
  set(CardNumber::kCpuSystem, s.cpu_system);
  set(CardNumber::kCpuOfNodes, s.cpu_of_nodes);
  set(CardNumber::kNodeCpus, s.node_cpus);
  set(CardNumber::kLeastCpu, s.least_cpu.value);
  set(CardNumber::kMostCpu, s.most_cpu.value);
  set(CardNumber::kMemoryPeak, s.memory_peak.value);
  set(CardNumber::kMemoryTotal, s.memory_total);
  set(CardNumber::kNetworkReceived, s.network_received);
  set(CardNumber::kNetworkSent, s.network_sent);
  set(CardNumber::kDiskRead, s.disk_read);
  set(CardNumber::kDiskWritten, s.disk_written);
  set(CardNumber::kTaskRead, s.task_read);
  set(CardNumber::kTaskWritten, s.task_written);
  set(CardNumber::kEnergy, Sum(hardware.step_joules, hardware.gpu_joules));
  set(CardNumber::kMeasuredTasks, s.measured_tasks);
  if (!std::isnan(s.measured_tasks)) set(CardNumber::kMeasured, s.measured);
  set(CardNumber::kMemoryLimit, s.memory_limit);
  return numbers;
}

void WriteNumbers(ByteWriter& w, const std::array<double, kCardNumbers>& numbers) {
  uint64_t measured = 0;
  for (size_t i = 0; i < kCardNumbers; ++i) {
    if (std::isfinite(numbers[i])) measured |= uint64_t{1} << i;
  }
  w.Varint(measured);
  for (const double number : numbers) {
    if (std::isfinite(number)) w.Fixed(number);
  }
}

void ReadNumbers(ByteReader& r, std::array<double, kCardNumbers>& numbers) {
  const uint64_t measured = r.Varint();
  if (measured >> kCardNumbers != 0) return r.Fail();
  for (size_t i = 0; i < kCardNumbers; ++i) {
    const bool there = (measured >> i & 1) != 0;
    numbers[i] = there ? r.Fixed<double>() : kMissing;
    if (there && !std::isfinite(numbers[i])) return r.Fail();
  }
}

void WriteTags(ByteWriter& w, const UserTags& tags) {
  const size_t count = std::min(tags.size(), kMaxUserTags);
  w.Varint(count);
  for (auto tag = tags.begin(); tag != std::next(tags.begin(), static_cast<long>(count)); ++tag) {
    w.Text(CardText(tag->first, kMaxUserTagName));
    w.Text(CardText(tag->second, kMaxUserTagValue));
  }
}

void ReadTags(ByteReader& r, Card& card) {
  card.tags.clear();
  const size_t count = r.Count(2, kMaxUserTags);
  for (size_t i = 0; i < count && r.ok(); ++i) {
    const std::string_view name = r.Text(kMaxUserTagName);
    card.tags.emplace_back(name, r.Text(kMaxUserTagValue));
  }
}

uint32_t ReadCount(ByteReader& r) {
  const uint64_t count = r.Varint();
  if (count > std::numeric_limits<uint32_t>::max()) r.Fail();
  return static_cast<uint32_t>(count);
}

void ReadState(ByteReader& r, Card& card) {
  const auto state = r.Fixed<uint8_t>();
  card.state = state < kStates.size() ? kStates[state] : EndState::kUnknown;
  card.level = r.Fixed<uint8_t>();
  const int64_t status = r.Signed();
  if (status < std::numeric_limits<int>::min() || status > std::numeric_limits<int>::max()) {
    return r.Fail();
  }
  card.exit_status = static_cast<int>(status);
}

void ReadFigure(ByteReader& r, Card& card) {
  card.figure = r.Text(kMaxCardName);
  card.figure_unit = {};
  card.figure_value = kMissing;
  if (card.figure.empty()) return;
  card.figure_unit = r.Text(kMaxCardName);
  card.figure_value = r.Fixed<double>();
}

}  // namespace

std::string CardText(std::string_view text, size_t limit) {
  std::string out;
  while (!text.empty()) {
    const size_t length = names::Utf8Length(text, 0);
    const std::string_view next = length == 0 ? kReplacement : text.substr(0, length);
    if (out.size() + next.size() > limit) break;
    out += next;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string MakeCard(const Profile& profile, size_t profile_bytes, Nanos now) {
  const JobDescription& job = profile.job;
  const Summary summary = Summarize(profile, {}, now);
  std::string out;
  ByteWriter w(out);
  w.Fixed(kCardVersion);
  w.Fixed(NumberOf(job.state));
  w.Fixed(static_cast<uint8_t>(job.level));
  w.Signed(job.exit_status);
  w.Fixed(job.end);
  w.Varint(job.expected_nodes);
  w.Varint(job.expected_tasks);
  const double stored = profile.cost.stored_bytes;
  w.Varint(stored > 0 && stored < 0x1p62 ? static_cast<uint64_t>(stored) : profile_bytes);
  for (const uint64_t n : {job.coverage.expected, job.coverage.got, job.coverage.skipped}) {
    w.Varint(n);
  }
  w.Text(CardText(job.name, kMaxCardName));
  for (const std::string* word :
       {&job.user, &job.account, &job.partition, &job.array_job, &job.array_task, &job.het_job}) {
    w.Text(CardText(*word, kMaxCardWord));
  }
  w.Text(CardText(job.command, kMaxCardCommand));
  const std::string figure =
      job.figures.empty() ? "" : CardText(job.figures.front().name, kMaxCardName);
  w.Text(figure);
  if (!figure.empty()) {
    const double value = job.figures.front().value;
    w.Text(CardText(job.figures.front().unit, kMaxCardName));
    w.Fixed(std::isfinite(value) ? value : kMissing);
  }
  WriteTags(w, job.tags);
  WriteNumbers(w, NumbersOf(profile, summary));
  for (const Held* held : {&summary.least_cpu, &summary.most_cpu, &summary.memory_peak}) {
    w.Text(CardText(held->by, kMaxCardHolder));
  }
  return out;
}

Status DecodeCard(std::string_view bytes, Card& card) {
  if (bytes.empty() || bytes.size() > kMaxCard) {
    return {Code::kCorrupt, "a card is empty or too long"};
  }
  ByteReader r(bytes);
  const auto version = r.Fixed<uint8_t>();
  if (version > kCardVersion) {
    return {Code::kUnsupported,
            "a card of version " + std::to_string(version) + " was written by a later Sonde"};
  }
  // Where the indexes are complete there are none of an earlier version.
  if (version < kCardVersion) {
    return {Code::kCorrupt, "a card is of the earlier version " + std::to_string(version)};
  }
  ReadState(r, card);
  card.end = r.Fixed<Nanos>();
  if (card.end < 0) r.Fail();
  card.nodes = ReadCount(r);
  card.tasks = ReadCount(r);
  card.size = r.Varint();
  card.coverage.expected = r.Varint();
  card.coverage.got = r.Varint();
  card.coverage.skipped = r.Varint();
  card.name = r.Text(kMaxCardName);
  for (std::string_view* word : {&card.user, &card.account, &card.partition, &card.array_job,
                                 &card.array_task, &card.het_job}) {
    *word = r.Text(kMaxCardWord);
  }
  card.command = r.Text(kMaxCardCommand);
  ReadFigure(r, card);
  ReadTags(r, card);
  ReadNumbers(r, card.numbers);
  for (std::string_view* by : {&card.least_by, &card.most_by, &card.memory_by}) {
    *by = r.Text(kMaxCardHolder);
  }
  return r.done() ? Status() : Status(Code::kCorrupt, "a card fails its checks");
}

Summary SummaryOfCard(const Card& card, Nanos start, Nanos now) {
  Summary s;
  const Nanos end = card.end != 0 ? card.end : now;
  s.duration = end > start ? static_cast<double>(end - start) / kSecond : kMissing;
  s.cpu_seconds = card.Number(CardNumber::kCpu);
  s.cpu_user = card.Number(CardNumber::kCpuUser);
  s.cpu_system = card.Number(CardNumber::kCpuSystem);
  s.measured_tasks = card.Number(CardNumber::kMeasuredTasks);
  const bool known = s.measured_tasks > 0;
  s.measured = known ? card.Number(CardNumber::kMeasured) : s.duration;
  const double tasks = known ? s.measured_tasks : card.tasks;
  s.cpu_of_tasks = tasks == 0 ? kMissing : s.cpu_seconds / (s.measured * tasks);
  s.cpu_of_nodes = card.Number(CardNumber::kCpuOfNodes);
  s.node_cpus = card.Number(CardNumber::kNodeCpus);
  s.least_cpu = {card.Number(CardNumber::kLeastCpu), std::string(card.least_by)};
  s.most_cpu = {card.Number(CardNumber::kMostCpu), std::string(card.most_by)};
  s.memory_peak = {card.Number(CardNumber::kMemoryPeak), std::string(card.memory_by)};
  s.memory_total = card.Number(CardNumber::kMemoryTotal);
  s.memory_of_node = s.memory_total > 0 ? s.memory_peak.value / s.memory_total : kMissing;
  s.memory_limit = card.Number(CardNumber::kMemoryLimit);
  s.memory_of_limit = s.memory_limit > 0 ? s.memory_peak.value / s.memory_limit : kMissing;
  s.network_received = card.Number(CardNumber::kNetworkReceived);
  s.network_sent = card.Number(CardNumber::kNetworkSent);
  s.disk_read = card.Number(CardNumber::kDiskRead);
  s.disk_written = card.Number(CardNumber::kDiskWritten);
  s.task_read = card.Number(CardNumber::kTaskRead);
  s.task_written = card.Number(CardNumber::kTaskWritten);
  return s;
}

}  // namespace sonde
