#include "core/text/metric_title.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sonde {
namespace {

// What people look at first, in fewer words than its help needs.
constexpr std::pair<std::string_view, std::string_view> kShort[] = {
    {"gpu_utilization_ratio", "GPU busy"},
    {"node_cpu_seconds_total", "CPU time by mode"},
    {"node_disk_read_bytes_total", "Read from disks"},
    {"node_disk_written_bytes_total", "Written to disks"},
    {"node_memory_AnonPages_bytes", "Memory of programs"},
    {"node_memory_Cached_bytes", "Page cache"},
    {"node_memory_MemAvailable_bytes", "Memory left for programs"},
    {"node_network_receive_bytes_total", "Received over the network"},
    {"node_network_transmit_bytes_total", "Sent over the network"},
    {"node_pressure_cpu_waiting_seconds_total", "Waiting for a processor"},
    {"node_pressure_io_waiting_seconds_total", "Waiting for I/O"},
    {"node_pressure_memory_waiting_seconds_total", "Waiting for memory"},
    {"sonde_cpu_seconds_total", "CPU time of Sonde"},
    {"sonde_memory_bytes", "Memory of Sonde"},
    {"task_cpu_seconds_total", "CPU time of the tasks"},
    {"task_read_bytes_total", "Read by the tasks"},
    {"task_resident_memory_bytes", "Memory of the tasks"},
    {"task_threads", "Threads of the tasks"},
    {"task_written_bytes_total", "Written by the tasks"},
};
// Sentences that begin so are about the metric that stands above in the list.
constexpr std::array<std::string_view, 10> kOfAnother = {
    "Those ",  "Part of ", "Its ",  "The same", "Of these",
    "Of them", "From ",    "They ", "It ",      "As "};
// What a heading need not say: the unit stands beside the numbers.
constexpr std::array<std::string_view, 4> kPrefixes = {"node_", "task_", "cgroup_", "sonde_"};
constexpr std::array<std::string_view, 8> kSuffixes = {"_total",  "_bytes", "_seconds", "_ratio",
                                                       "_joules", "_watts", "_celsius", "_hertz"};

// Words that are letters.
constexpr std::array<std::string_view, 8> kLetters = {"cpu", "gpu", "mpi",  "ip",
                                                      "tcp", "udp", "numa", "nfs"};

std::string_view FirstSentence(std::string_view help) {
  size_t end = help.find(". ");
  end = std::min(end, help.find_first_of("\n\r;:"));
  end = std::min(end, help.find(" ("));
  std::string_view sentence = help.substr(0, end);
  if (sentence.size() > kMaxTitle) sentence = sentence.substr(0, sentence.find(", "));
  while (!sentence.empty() && (sentence.back() == '.' || sentence.back() == ' ')) {
    sentence.remove_suffix(1);
  }
  return sentence;
}

std::string NameInWords(std::string_view name) {
  for (const std::string_view prefix : kPrefixes) {
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    name.remove_prefix(prefix.size());
    break;
  }
  for (const std::string_view suffix : kSuffixes) {
    if (!name.ends_with(suffix)) continue;
    // Of "io_seconds" the rest would say nothing.
    const std::string_view rest = name.substr(0, name.size() - suffix.size());
    if (rest.empty()) continue;
    if (rest.find('_') != std::string_view::npos || suffix == kSuffixes[0]) name = rest;
  }
  std::string words;
  while (!name.empty()) {
    const size_t end = name.find_first_of("_.:");
    std::string word(name.substr(0, end));
    if (word == "io") {
      word = "I/O";
    } else if (std::find(kLetters.begin(), kLetters.end(), word) != kLetters.end()) {
      std::transform(word.begin(), word.end(), word.begin(),
                     [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    }
    words.append(words.empty() ? "" : " ").append(word);
    name.remove_prefix(end == std::string_view::npos ? name.size() : end + 1);
  }
  if (!words.empty() && words[0] >= 'a' && words[0] <= 'z') {
    words[0] = static_cast<char>(words[0] - 'a' + 'A');
  }
  return words;
}

}  // namespace

std::string MetricTitle(std::string_view name, std::string_view help) {
  for (const auto& [of, title] : kShort) {
    if (name == of) return std::string(title);
  }
  const std::string_view sentence = FirstSentence(help);
  const bool of_another =
      std::any_of(kOfAnother.begin(), kOfAnother.end(),
                  [&](std::string_view begin) { return sentence.starts_with(begin); }) ||
      sentence.ends_with(" them");
  if (sentence.empty() || sentence.size() > kMaxTitle || of_another) return NameInWords(name);
  return std::string(sentence);
}

}  // namespace sonde
