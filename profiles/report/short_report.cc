#include "profiles/report/short_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "profiles/model/hardware.h"
#include "profiles/model/text.h"
#include "profiles/report/calls.h"
#include "profiles/report/headline.h"
#include "profiles/report/local_time.h"
#include "profiles/report/moments.h"
#include "profiles/report/used.h"

namespace sonde {
namespace {

using text::Bytes;
using text::Percent;
using text::Printable;
using text::Seconds;

using text::kLabelWidth;
constexpr size_t kShortBar = 10;
constexpr size_t kShortHeadline = 4;
constexpr size_t kMaxFigures = 3;
constexpr size_t kLeastNote = 20;  // characters
constexpr std::string_view kBetween = "   ";

std::string HowMany(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

class Writing {
 public:
  Writing(const Profile& profile, const ReportOptions& options)
      : profile_(profile),
        job_(profile.job),
        options_(options),
        s_(Summarize(profile, options.nodes, options.now)) {}

  std::string Write() {
    Title();
    Headline();
    Bars();
    Traffic();
    Figures();
    Hint();
    Note();
    Rest();
    return std::move(out_);
  }

 private:
  void Labelled(std::string_view label, std::string_view text) {
    out_ += text::Labelled(label, text, options_.width);
  }

  void Title() {
    std::string text = "Sonde: " + Printable(job_.id.ToString());
    if (!job_.name.empty()) text += fmt::format(" ({})", Printable(job_.name));
    text += fmt::format(" {}", ToString(job_.state));
    if (!std::isnan(s_.duration)) text += " in " + Seconds(s_.duration);
    text += fmt::format(", {}, {}", HowMany(job_.expected_nodes, "node"),
                        HowMany(job_.expected_tasks, "task"));
    out_ += text::Wrapped("", std::string(kLabelWidth, ' '), text, options_.width);
  }

  void Headline() {
    const auto parts = HeadlineOf(profile_, s_, options_.now);
    if (!parts.empty()) Labelled("In short", HeadlineText(parts, kShortHeadline));
  }

  // As many of them beside each other as the width allows.
  void Bars() {
    std::vector<std::string> bars;
    const auto add = [&](std::string_view label, double ratio, const std::string& of) {
      if (std::isnan(ratio)) return;
      bars.push_back(fmt::format("{:<{}}{} {}{}", label, bars.empty() ? kLabelWidth : 0,
                                 text::Bar(ratio, kShortBar, options_.unicode), Percent(ratio),
                                 of));
    };
    const auto asked = AskedAndUsed(profile_, s_, options_.now);
    const auto cpus = std::find_if(asked.begin(), asked.end(),
                                   [](const Used& one) { return one.what == "cpus"; });
    if (cpus != asked.end()) {
      add("CPU", cpus->used / cpus->asked, fmt::format(" of {}", text::Number(cpus->asked)));
    } else {
      add("CPU", s_.cpu_of_tasks, "");
    }
    const bool limited = !std::isnan(s_.memory_of_limit);
    add("Memory ", limited ? s_.memory_of_limit : s_.memory_of_node,
        " of " + Bytes(limited ? s_.memory_limit : s_.memory_total));
    add("GPU ", SummarizeHardware(profile_).gpu_utilization, "");
    const double tasks = TaskSeconds(profile_, s_);
    const CallTimes times = TimesOfCalls(profile_);
    if (times.mpi > 0) add("MPI ", times.mpi / tasks, "");
    if (times.files > 0) add("Files ", times.files / tasks, "");
    std::string line;
    for (const std::string& bar : bars) {
      const size_t width = text::Width(line) + kBetween.size() + text::Width(bar);
      if (!line.empty() && width > options_.width) {
        out_ += line + "\n";
        line.assign(kLabelWidth, ' ');
        line += bar;
      } else {
        line += (line.empty() ? "" : std::string(kBetween)) + bar;
      }
    }
    if (!line.empty()) out_ += line + "\n";
  }

  void Traffic() {
    std::string text;
    const auto add = [&](double bytes, std::string_view what) {
      if (!(bytes > 0)) return;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Bytes(bytes), what);
    };
    add(s_.task_read, "read");
    add(s_.task_written, "written");
    add(s_.network_received, "received");
    add(s_.network_sent, "sent");
    if (!text.empty()) Labelled("Moved", text);
  }

  void Figures() {
    std::string text;
    for (size_t i = 0; i < std::min(job_.figures.size(), kMaxFigures); ++i) {
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", Printable(job_.figures[i].name),
                          FigureValue(job_.figures[i]));
    }
    if (!text.empty()) Labelled("Figures", text);
  }

  void Hint() {
    if (options_.hints.empty()) return;
    const ReportHint& first = options_.hints.front();
    std::string text = Printable(first.says);
    if (options_.hints.size() > 1) {
      text += fmt::format(" (and {} more)", HowMany(options_.hints.size() - 1, "hint"));
    }
    Labelled("Hint", text);
  }

  // Alarms are notes, too, and come first.
  void Note() {
    if (job_.notes.empty()) return;
    const auto alarm =
        std::find_if(job_.notes.begin(), job_.notes.end(),
                     [](const std::string& note) { return note.starts_with("alarm "); });
    const std::string& first = alarm != job_.notes.end() ? *alarm : job_.notes.front();
    const std::string rest =
        job_.notes.size() == 1 ? "" : fmt::format(" (and {} more)", job_.notes.size() - 1);
    const size_t taken = kLabelWidth + rest.size();
    const size_t room = options_.width > taken ? options_.width - taken : 0;
    Labelled("Note", text::Cut(Printable(LocalTimesIn(first)), std::max(room, kLeastNote)) + rest);
  }

  // What is not whole, and where the rest is.
  void Rest() {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (job_.coverage.expected == 0) {
      add("no samples");
    } else if (job_.coverage.got < job_.coverage.expected) {
      add(fmt::format("coverage {}", Percent(job_.coverage.Ratio())));
    }
    if (!text.empty()) text += "; ";
    Labelled("See", fmt::format("{}sonde show {}", text, Printable(job_.id.ToString())));
  }

  const Profile& profile_;
  const JobDescription& job_;
  const ReportOptions& options_;
  const Summary s_;
  std::string out_;
};

}  // namespace

std::string ShortReport(const Profile& profile, const ReportOptions& options) {
  return Writing(profile, options).Write();
}

}  // namespace sonde
