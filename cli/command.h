// What the subcommands of `sonde` share.
//
// Each subcommand is a file with one Register function in the table of main.cc: it adds the
// subcommand and its options to the program and returns the function to run. Exit codes are kDone
// to kWorse, the same for all of them.
//
// Thread safety: one thread, main's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "core/config.h"
#include "core/status.h"
#include "profiles/archive/archive.h"
#include "profiles/archive/open_archive.h"

namespace sonde::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;     // the archive, the network or the system failed us
inline constexpr int kUsage = 2;      // wrong options
inline constexpr int kNotFound = 3;   // no such job, or it is not in the state that is needed
inline constexpr int kNotLooked = 4;  // `archive verify` could not look; kFailed: it found damage
inline constexpr int kWorse = 5;      // `check` has found that a run is worse

// The program's environment and output.
struct Environment {
  std::string config_path{kDefaultConfigPath};
  std::string archive;  // as given by --archive; "": config and environment name it

  std::string user;
  std::string home;
  uint32_t uid = 0;
  bool terminal = false;  // stdout is one
  bool colour = false;    // and may be coloured
  bool unicode = false;   // the locale is UTF-8
  size_t width = 0;       // of the terminal, or wide enough for anything
};
Environment DetectEnvironment();

// The chosen subcommand's function; gives the exit code.
using Run = std::function<int(const Environment&)>;

void RegisterAlarms(Arguments app, Run& run);
void RegisterAnnotate(Arguments app, Run& run);
void RegisterArchive(Arguments app, Run& run);
void RegisterBudget(Arguments app, Run& run);
void RegisterCheck(Arguments app, Run& run);
void RegisterDiff(Arguments app, Run& run);
void RegisterDoctor(Arguments app, Run& run);
void RegisterEnergy(Arguments app, Run& run);
void RegisterEvents(Arguments app, Run& run);
void RegisterExport(Arguments app, Run& run);
void RegisterFigure(Arguments app, Run& run);
void RegisterGrep(Arguments app, Run& run);
void RegisterHints(Arguments app, Run& run);
void RegisterImport(Arguments app, Run& run);
void RegisterJoin(Arguments app, Run& run);
void RegisterLs(Arguments app, Run& run);
void RegisterModel(Arguments app, Run& run);
void RegisterOpen(Arguments app, Run& run);
void RegisterPause(Arguments app, Run& run);
void RegisterPhase(Arguments app, Run& run);
void RegisterPeaks(Arguments app, Run& run);
void RegisterPeriod(Arguments app, Run& run);
void RegisterPhases(Arguments app, Run& run);
void RegisterPredict(Arguments app, Run& run);
void RegisterPut(Arguments app, Run& run);
void RegisterResume(Arguments app, Run& run);
void RegisterRoofline(Arguments app, Run& run);
void RegisterRun(Arguments app, Run& run);
void RegisterServe(Arguments app, Run& run);
void RegisterShow(Arguments app, Run& run);
void RegisterStragglers(Arguments app, Run& run);
void RegisterTag(Arguments app, Run& run);
void RegisterTop(Arguments app, Run& run);
void RegisterUrl(Arguments app, Run& run);

// Prints "sonde: ..." to stderr and gives the exit code for the failure.
int Fail(const Status& status);
// The same for wrong options.
int FailUsage(const Status& status);
int FailUsage(std::string_view text);
// Prints "sonde: ..." to stderr.
void Note(std::string_view text);
// To stdout, as Shown. A closed pipe (`sonde ls | head`) is no failure.
int Print(std::string_view text);
// `text` with a '?' for each character that is neither printable (core/text/printable.h) nor the
// end of a line, a tab or one of the report's colours: whoever made a profile, and whoever answers
// at a step's address, may have put codes for terminals into it.
std::string Shown(std::string_view text);

// The step in which the command runs, by Slurm's environment; "": none.
std::string OwnStep();

Result<std::string> ArchiveDirectory(const Environment& env);
// Opens the archive and prints its note, if there is one.
Result<OpenedArchive> OpenArchive(const Environment& env, ArchiveUse use);
// Tells what could not be read of the archive, if anything: call it when all is read.
void NoteDamage(const Archive& archive);

// Also makes the index entries that an older archive lacks: for a few seconds or, if the command
// needs `all` of them, to the end, since without them it would read every profile.
Result<OpenedArchive> OpenIndexed(const Environment& env, bool all, ArchiveUse use);

// The running step of that name (FindSteps), with an endpoint if it has one by now; kNotFound says
// what to do instead.
Result<ProfileEntry> FindRunning(const Archive& archive, std::string_view id);

}  // namespace sonde::cli
