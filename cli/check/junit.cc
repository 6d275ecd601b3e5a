#include "cli/check/junit.h"

#include <fmt/core.h>

#include <cmath>
#include <string_view>

#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

// Only what XML 1.0 allows; text of users has been through Printable.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text::Printable(std::string(text))) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Case(const CheckedRun& run, std::string_view name, std::string_view inside) {
  return fmt::format("  <testcase classname=\"{}\" name=\"{}\">{}</testcase>\n",
                     Escaped(run.profile.job.name), Escaped(name), inside);
}

}  // namespace

std::string ChangeText(const JudgedNumber& number) {
  const insight::Judgement& judged = number.judged;
  if (std::isnan(judged.value)) return "this run has no such number";
  const std::string value = text::Value(judged.value, number.unit);
  if (std::isnan(judged.limit)) {
    return fmt::format("{}, of {} earlier run{}: {} are needed to tell", value, judged.runs,
                       judged.runs == 1 ? "" : "s", insight::Judgement::kEnough);
  }
  const double base = std::abs(judged.usual);
  return fmt::format("{}, usually {}: {:+.1f} %, where up to {:.1f} % is noise", value,
                     text::Value(judged.usual, number.unit),
                     100 * (judged.value - judged.usual) / base, 100 * judged.limit / base);
}

std::string CheckToJunit(const CheckedRun& run) {
  std::string cases;
  size_t tests = 1, failures = 0, skipped = 0;
  const std::string state = StateWord(run.profile.job);
  if (run.completed()) {
    cases += Case(run, "completed", "");
  } else {
    ++failures;
    cases += Case(run, "completed", fmt::format("<failure message=\"{}\"/>", Escaped(state)));
  }
  for (const JudgedNumber& number : run.numbers) {
    if (number.better == insight::Better::kUnknown) continue;
    ++tests;
    const std::string words = Escaped(ChangeText(number));
    std::string inside;
    if (number.judged.worse) {
      ++failures;
      inside = fmt::format("<failure message=\"{}\"/>", words);
    } else if (std::isnan(number.judged.limit)) {
      ++skipped;
      inside = fmt::format("<skipped message=\"{}\"/>", words);
    } else {
      inside = fmt::format("<system-out>{}</system-out>", words);
    }
    cases += Case(run, fmt::format("{}: {}", ToString(number.section), number.name), inside);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"sonde check {}\" tests=\"{}\" "
      "failures=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
      Escaped(run.profile.job.id.ToString()), tests, failures, skipped, cases);
}

}  // namespace sonde::cli
