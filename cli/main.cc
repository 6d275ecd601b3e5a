// The command `sonde`: a table of subcommands, each in a file of its own.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "core/log.h"

namespace sonde::cli {
namespace {

using Register = void (*)(Arguments app, Run& run);
constexpr Register kSubcommands[] = {
    RegisterAlarms,     RegisterAnnotate, RegisterArchive, RegisterBudget,  RegisterCheck,
    RegisterDiff,       RegisterDoctor,   RegisterEnergy,  RegisterEvents,  RegisterExport,
    RegisterFigure,     RegisterGrep,     RegisterHints,   RegisterImport,  RegisterJoin,
    RegisterLs,         RegisterModel,    RegisterOpen,    RegisterPause,   RegisterPeaks,
    RegisterPeriod,     RegisterPhase,    RegisterPhases,  RegisterPredict, RegisterPut,
    RegisterResume,     RegisterRoofline, RegisterRun,     RegisterServe,   RegisterShow,
    RegisterStragglers, RegisterTag,      RegisterTop,     RegisterUrl};

// The first word that is neither an option of `app` nor the value of one.
size_t SkipOptions(const CLI::App& app, const std::vector<std::string>& words, size_t at) {
  while (at < words.size() && words[at].starts_with('-') && words[at] != "--") {
    const CLI::Option* option = app.get_option_no_throw(words[at]);
    at += option != nullptr && option->get_items_expected_min() > 0 ? 2 : 1;
  }
  return at;
}

// From the command of `sonde run` on, options belong to that command: a "--" before the command
// tells the parser so.
std::vector<std::string> Words(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  size_t at = SkipOptions(app, words, 0);
  if (at >= words.size() || words[at] != "run") return words;
  at = SkipOptions(*app.get_subcommand("run"), words, at + 1);
  if (at < words.size() && words[at] != "--") {
    words.insert(words.begin() + static_cast<ptrdiff_t>(at), "--");
  }
  return words;
}

int Main(int argc, char** argv) {
  // stdout is for the command's output.
  static_cast<void>(log::Open("sonde", "", log::Level::kWarning));
  // Only its user may read the archive's files. write() reports a reader that goes away.
  ::umask(077);
  std::signal(SIGPIPE, SIG_IGN);
  Environment env = DetectEnvironment();
  CLI::App app(
      "Profiles of Slurm job steps that ran with --telemetry-level.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such job.");
  app.name("sonde");
  app.set_version_flag("--version", "sonde " SONDE_VERSION);
  app.require_subcommand(1);
  app.add_option("--archive", env.archive, "The archive's directory, instead of the user's own");
  app.add_option("--config", env.config_path, "The configuration file")->capture_default_str();
  Run run;
  for (const Register add : kSubcommands) add(Arguments(app), run);
  try {
    std::vector<std::string> words = Words(app, argc, argv);
    std::reverse(words.begin(), words.end());  // the order that the parser needs
    app.parse(std::move(words));
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kUsage;
  }
  return run(env);
}

}  // namespace
}  // namespace sonde::cli

int main(int argc, char** argv) try {
  return sonde::cli::Main(argc, argv);
} catch (const std::exception& e) {
  sonde::cli::Note(e.what());
  return sonde::cli::kFailed;
}
