// The command `sonde`: a table of subcommands, each in a file of its own.
#include <sys/stat.h>

#include <csignal>
#include <exception>

#include "cli/command.h"

namespace sonde::cli {
namespace {

using Register = void (*)(CLI::App& app, Run& run);
constexpr Register kSubcommands[] = {
    RegisterAnnotate, RegisterDoctor, RegisterEvents, RegisterFigure, RegisterJoin,
    RegisterLs,       RegisterPause,  RegisterPhase,  RegisterPut,    RegisterResume,
    RegisterRun,      RegisterServe,  RegisterShow,   RegisterUrl};

int Main(int argc, char** argv) {
  // What the archive writes is its user's alone. A reader that goes away is seen by write().
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
  for (const Register add : kSubcommands) add(app, run);
  try {
    app.parse(argc, argv);
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
