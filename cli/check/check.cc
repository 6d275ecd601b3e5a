// sonde check: whether a run is slower or heavier than those before it, by more than noise.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <utility>

#include "cli/check/judged.h"
#include "cli/check/junit.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/step/step_of.h"
#include "insight/steps/step_stragglers.h"
#include "profiles/json/writer.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

using insight::Better;
using insight::Judgement;

struct CheckOptions {
  CheckQuestion question;
  uint64_t least = 2;  // percent
  std::string junit;
  bool json = false;
};

std::string Verdict(const CheckedRun& run) {
  if (!run.completed()) {
    return fmt::format("The run did not complete: {}.\n",
                       text::Printable(StateWord(run.profile.job)));
  }
  if (!run.known()) {
    return fmt::format(
        "Nothing can be told yet: there {} {} earlier run{} like it, and {} are needed.\n",
        run.earlier == 1 ? "is" : "are", run.earlier, run.earlier == 1 ? "" : "s",
        Judgement::kEnough);
  }
  std::string worse;
  for (const JudgedNumber& number : run.numbers) {
    if (!number.judged.worse) continue;
    worse += fmt::format("{}{}", worse.empty() ? "" : ", ", text::Printable(number.name));
  }
  if (worse.empty()) return "It is as the earlier runs were, or better.\n";
  return fmt::format("Worse than the earlier runs, beyond noise: {}.\n", worse);
}

std::string NumbersTable(const CheckedRun& run, const Environment& env) {
  using enum text::Table::Align;
  text::Table table({{"", kLeft},
                     {"", kLeft},
                     {"", kLeft, true},
                     {"this run", kRight},
                     {"usual", kRight},
                     {"change", kRight},
                     {"noise", kRight}});
  const auto percent = [](double share, bool sign) {
    if (std::isnan(share)) return std::string("-");
    return sign ? fmt::format("{:+.1f} %", 100 * share) : fmt::format("{:.1f} %", 100 * share);
  };
  for (const JudgedNumber& number : run.numbers) {
    const Judgement& judged = number.judged;
    const double base = std::abs(judged.usual);
    std::string_view word;
    if (judged.worse) {
      word = "worse";
    } else if (judged.differs) {
      word = number.better == Better::kUnknown ? "differs" : "better";
    }
    table.Row(
        {std::string(word), std::string(ToString(number.section)), text::Printable(number.name),
         text::Value(judged.value, number.unit), text::Value(judged.usual, number.unit),
         percent((judged.value - judged.usual) / base, true), percent(judged.limit / base, false)});
  }
  return table.Render("", env.width);
}

// Who stands out in a run that is worse.
std::string WhoStandsOut(const Archive& archive, const CheckedRun& run) {
  const auto found = insight::StragglersOf(archive, run.key, run.profile);
  if (!found.ok()) return "";
  std::string out;
  for (const insight::ComparedMetric& metric : found->metrics) {
    for (const insight::NamedStraggler& one : metric.stragglers) {
      out += fmt::format("  {}: {} {}, where the others have {}\n", NameOf(one.who, metric.by),
                         metric.name, ValueText(one.found.overall.value, metric.unit),
                         ValueText(one.found.overall.others, metric.unit));
    }
  }
  if (out.empty()) return "No node or rank of it stands out.\n";
  return "Of its nodes and ranks there stand out (sonde stragglers says more):\n" + out;
}

std::string CheckText(const Archive& archive, const CheckedRun& run, const Environment& env) {
  std::string out = TitleOf(run.profile);
  out +=
      fmt::format("\n{} earlier run{} with the same command line, nodes, tasks and partition\n\n",
                  run.earlier, run.earlier == 1 ? "" : "s");
  if (run.known()) out += NumbersTable(run, env) + "\n";
  out += Verdict(run);
  if (run.worse()) out += WhoStandsOut(archive, run);
  return out;
}

std::string CheckToJson(const CheckedRun& run) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("step", run.profile.job.id.ToString()).Field("key", run.key);
  json.Field("state", StateWord(run.profile.job)).Field("earlier_runs", run.earlier);
  json.Field("known", run.known()).Field("worse", run.worse());
  json.Key("numbers").BeginArray();
  for (const JudgedNumber& number : run.numbers) {
    const Judgement& judged = number.judged;
    json.BeginObject().Field("section", ToString(number.section)).Field("name", number.name);
    json.Field("unit", number.unit);
    json.Field("better", number.better == Better::kLess   ? "less"
                         : number.better == Better::kMore ? "more"
                                                          : "unknown");
    json.Field("value", judged.value).Field("usual", judged.usual).Field("noise", judged.limit);
    json.Field("runs", judged.runs).Field("left_out", judged.left_out);
    json.Field("differs", judged.differs).Field("worse", judged.worse).EndObject();
  }
  json.EndArray().EndObject();
  out += "\n";
  return out;
}

int Check(CheckOptions options, const Environment& env) {
  options.question.least = static_cast<double>(options.least) / 100;
  const auto archive = OpenIndexed(env, false, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  Progress progress("reading runs", "steps");
  const auto run = CheckRun(*archive->reader, options.question,
                            [&](uint64_t done, uint64_t total) { progress.Set(done, total); });
  progress.End();
  if (!run.ok()) return Fail(run.status());
  NoteDamage(*archive->reader);
  if (!options.junit.empty()) {
    std::ofstream file(options.junit);
    file << CheckToJunit(*run);
    file.close();
    if (!file) {
      Fail(SystemError("write " + options.junit));
      return kFailed;  // whatever the reason is, it is not the run
    }
  }
  const int printed =
      Print(options.json ? CheckToJson(*run) : CheckText(*archive->reader, *run, env));
  if (printed != kDone) return printed;
  return run->worse() || !run->completed() ? kWorse : kDone;
}

}  // namespace

void RegisterCheck(Arguments app, Run& run) {
  const auto options = std::make_shared<CheckOptions>();
  Arguments sub =
      app.Command("check", "Say whether a run is slower or heavier than those before it");
  sub.Option("CMD|JOB", options->question.word,
             "The newest run of a command or name with this text, or a step, as in 4711.0")
      .Required();
  sub.Option("--last", options->question.last, "How many earlier runs count")
      .ShowDefault()
      .Within(4, 200);
  sub.Option("--same", options->question.same,
             "Only earlier runs that have the same value of this tag; may be repeated")
      .Repeated();
  sub.Option("--least", options->least, "A change that matters, in percent")
      .ShowDefault()
      .Within(0, 1000);
  sub.Option("--junit", options->junit, "Write the result to this file, as JUnit's XML");
  sub.Flag("--json", options->json, "As JSON, with every value exactly");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Check(*options, env); };
  });
}

}  // namespace sonde::cli
