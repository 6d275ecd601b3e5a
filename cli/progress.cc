#include "cli/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "cli/command.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

constexpr size_t kBar = 24;

bool IsTerminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

size_t Columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::string_view what, std::string_view unit, bool shown)
    : what_(text::Printable(what)),
      unit_(unit),
      shown_(shown && IsTerminal()),
      begin_(Clock::System().Monotonic()),
      next_(begin_ + kPatience) {}

void Progress::Set(uint64_t done, uint64_t total) {
  if (!shown_) return;
  const Nanos now = Clock::System().Monotonic();
  if (now < next_) return;
  next_ = now + kBetween;
  visible_ = true;
  const std::string line = ProgressLine(what_, unit_, done, total, now - begin_, Columns() - 1);
  fmt::print(stderr, "\r{}\x1b[K", line);
  std::fflush(stderr);
}

ArchiveProgress Progress::Follow() {
  return [this](uint64_t done, uint64_t total) {
    Set(done, total);
    return true;
  };
}

void Progress::End() {
  if (!visible_) return;
  visible_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

std::string ProgressLine(std::string_view what, std::string_view unit, uint64_t done,
                         uint64_t total, Nanos elapsed, size_t width) {
  std::string line(what);
  const double rate =
      static_cast<double>(done) * kSecond / static_cast<double>(std::max<Nanos>(elapsed, 1));
  if (total == 0) {
    line += fmt::format("  {}", text::Value(static_cast<double>(done), unit));
  } else {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    line += fmt::format("  [{}]  {:2.0f} %", text::Bar(share, kBar, false), 100 * share);
  }
  if (done > 0) line += fmt::format("  {}", text::Value(std::round(rate), unit, true));
  if (done > 0 && done < total) {
    const auto left = static_cast<double>(elapsed) / static_cast<double>(done) *
                      static_cast<double>(total - done);
    constexpr double kMost = 9e18;
    const auto whole = static_cast<Nanos>(std::min(left, kMost)) / kSecond * kSecond;
    line += fmt::format("  {} left", FormatDuration(std::max(whole, kSecond)));
  }
  return text::Cut(line, width);
}

OnWait TellWait(Progress& progress) {
  return [&progress](const std::string& work) {
    progress.End();
    Note("the server that has the archive open first ends what it was asked for before: " + work);
  };
}

}  // namespace sonde::cli
