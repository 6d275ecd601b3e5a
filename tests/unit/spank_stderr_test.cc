// What the plugin writes to the user of srun, sbatch and salloc: all of it where stderr is open,
// and not one byte where it is closed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/spank_fake_slurm.h"

namespace sonde {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

void UseIn(int pipe, const std::function<void(LoadedPlugin&)>& calls) {
  LoadedPlugin plugin;
  ::dup2(pipe, STDERR_FILENO);
  if (plugin.loaded()) {
    calls(plugin);
  } else {
    ::dprintf(pipe, "not loaded\n");
  }
}

// What is written to descriptor 2 meanwhile. Not `open`: that is closed when the process begins,
// and the number is given to a pipe of the process's own once plugins are loaded.
std::string Said(bool open, const std::function<void(LoadedPlugin&)>& calls) {
  int pipe[2];
  if (::pipe(pipe) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    ::close(STDERR_FILENO);
    if (open) ::dup2(pipe[1], STDERR_FILENO);
    UseIn(pipe[1], calls);
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string text;
  char piece[4096];
  for (ssize_t size; (size = ::read(pipe[0], piece, sizeof(piece))) > 0;) {
    text.append(piece, static_cast<size_t>(size));
  }
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return text + (status == 0 ? "" : "the process failed");
}

struct Line {
  const char* name;
  const char* expected;
  std::function<void(LoadedPlugin&)> calls;
};

void PrintTo(const Line& line, std::ostream* out) { *out << line.name; }

const Line kLines[] = {
    {"WrongArgument", "unknown argument 'sondd'",
     [](LoadedPlugin& plugin) {
       plugin.arguments.emplace_back("sondd=/x");
       plugin.Call("slurm_spank_init");
     }},
    {"OptionsRefused", "register option --telemetry-level",
     [](LoadedPlugin& plugin) {
       Slurm().registers = false;
       plugin.Call("slurm_spank_init");
     }},
    {"WrongVariable", "--telemetry-period=1ms",
     [](LoadedPlugin& plugin) {
       ::setenv("SLURM_TELEMETRY_PERIOD", "1ms", 1);
       plugin.Call("slurm_spank_init");
     }},
    {"WrongOption", "--telemetry-level=7",
     [](LoadedPlugin& plugin) {
       plugin.Call("slurm_spank_init");
       LoadedPlugin::Give("telemetry-level", "7");
     }},
    {"IgnoredOption", "--telemetry-level is ignored",
     [](LoadedPlugin& plugin) {
       plugin.arguments.emplace_back("enable=accept");
       plugin.Call("slurm_spank_init");
       LoadedPlugin::Give("telemetry-level", "2");
     }},
    {"LoweredOption", "at most 1 here",
     [](LoadedPlugin& plugin) {
       char conf[] = "/tmp/sonde-conf-XXXXXX";
       const int file = ::mkstemp(conf);
       ::dprintf(file, "max_level = 1\n");
       plugin.arguments[1] = std::string("config=") + conf;
       plugin.Call("slurm_spank_init");
       LoadedPlugin::Give("telemetry-level", "2");
       plugin.Call("slurm_spank_init_post_opt");
       if (Slurm().context == S_CTX_LOCAL) plugin.Call("slurm_spank_local_user_init");
       plugin.Call("slurm_spank_exit");
       ::unlink(conf);
     }},
    {"NoHead", "no telemetry for step",
     [](LoadedPlugin& plugin) {
       Slurm().context = S_CTX_LOCAL;
       plugin.Call("slurm_spank_init");
       LoadedPlugin::Give("telemetry-level", "2");
       plugin.Call("slurm_spank_init_post_opt");
       plugin.Call("slurm_spank_local_user_init");
       plugin.Call("slurm_spank_exit");
     }},
};

// --- A sonde.conf that is not there

std::string WithoutConf(spank_context_t context, bool asked) {
  Slurm().context = context;
  Slurm().items = {{S_JOB_ID, 7},
                   {S_JOB_STEPID, 0},
                   {S_JOB_NNODES, 1},
                   {S_JOB_UID, getuid()},
                   {S_JOB_GID, getgid()}};
  return Said(true, [asked](LoadedPlugin& plugin) {
    plugin.arguments = {"sonded=/bin/true", "config=/nonexistent/sonde.conf"};
    plugin.Call("slurm_spank_init");
    if (asked) LoadedPlugin::Give("telemetry-level", "4");
    if (Slurm().context == S_CTX_REMOTE) {
      const std::string met = "4242:" + std::string(64, 'a');
      LoadedPlugin::Give("telemetry-rendezvous", met.c_str());
    }
    plugin.Call("slurm_spank_init_post_opt");
    if (Slurm().context == S_CTX_LOCAL) plugin.Call("slurm_spank_local_user_init");
  });
}

// What the site allows is not known.
TEST(NamedConf, ThatIsMissingMeansThatTheStepIsNotWatched) {
  const std::string line =
      ": open /nonexistent/sonde.conf: No such file or directory (config= in plugstack.conf)\n";
  for (const spank_context_t context : {S_CTX_LOCAL, S_CTX_REMOTE}) {
    const std::string step = context == S_CTX_LOCAL ? "7.0" : "0";
    EXPECT_EQ(WithoutConf(context, true), "sonde: no telemetry for step " + step + line);
  }
  EXPECT_EQ(WithoutConf(S_CTX_LOCAL, false), "");
  // Every step of everybody would have a line in slurmd's log.
  EXPECT_EQ(WithoutConf(S_CTX_REMOTE, false), "debug: sonde: no telemetry for step 0" + line);
  EXPECT_EQ(WithoutConf(S_CTX_ALLOCATOR, true), "");
}

// --- Tags that are inherited beside those that are typed

std::string Tags(char name, size_t count) {
  std::string list;
  for (size_t i = 0; i < count; ++i) {
    list += (i == 0 ? "" : ",") + (name + std::to_string(i)) + "=" + std::string(200, name);
  }
  return list;
}

// As Slurm does: first what stands in the environment, then what was typed. In front of the last
// line, whether all was taken; behind it, what goes on to the job's steps.
std::string WithTags(const std::string& inherited, const std::vector<std::string>& typed) {
  Slurm().context = S_CTX_ALLOCATOR;
  return Said(true, [&](LoadedPlugin& plugin) {
    constexpr const char* kVariable = "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_tag";
    ::setenv("SLURM_TELEMETRY_TAG", inherited.c_str(), 1);
    plugin.Call("slurm_spank_init");
    bool taken = LoadedPlugin::Give("telemetry-tag", ::getenv(kVariable));
    for (const std::string& tags : typed) {
      taken = LoadedPlugin::Give("telemetry-tag", tags.c_str()) && taken;
    }
    plugin.Call("slurm_spank_init_post_opt");
    ::dprintf(STDERR_FILENO, "%s\n", taken ? ::getenv(kVariable) : "refused");
  });
}

TEST(InheritedTags, ThatLeaveNoRoomForTypedOnesAreDropped) {
  const std::string line =
      "sonde: the inherited tags are dropped, as there is no room for them beside those of "
      "--telemetry-tag\n";
  const std::string inherited = Tags('i', 30);
  EXPECT_EQ(WithTags(inherited, {"a=1"}), inherited + ",a=1\n");
  EXPECT_EQ(WithTags(inherited, {Tags('t', 12)}), line + Tags('t', 12) + "\n") << "bytes";
  EXPECT_EQ(WithTags(inherited, {"a,b,c"}), line + "a,b,c\n") << "their number";
  EXPECT_EQ(WithTags(inherited, {"a", "b", "c"}), line + "a,b,c\n");
  EXPECT_EQ(WithTags(inherited, {Tags('t', 12), Tags('u', 12)}),
            line + Tags('t', 12) + "," + Tags('u', 12) + "\n");
}

// Of a heterogeneous step some releases give the inherited value once for each component.
TEST(InheritedTags, ThatAreGivenAgainCountOnce) {
  const std::string inherited = Tags('i', 30);
  EXPECT_EQ(WithTags(inherited, {inherited, "a=1"}), inherited + ",a=1\n");
}

TEST(TypedTags, ThatAreTooManyTogetherAreRefused) {
  EXPECT_THAT(WithTags("x=1", {Tags('t', 20), Tags('u', 20)}),
              testing::AllOf(HasSubstr("expected up to 32 tags"), testing::EndsWith("refused\n")));
}

class Stderr : public testing::TestWithParam<std::tuple<spank_context_t, Line>> {
 protected:
  static std::string SaidBy(bool open) {
    const auto& [context, line] = GetParam();
    Slurm().context = context;
    return Said(open, line.calls);
  }
};

TEST_P(Stderr, HasTheLineWhereItIsOpen) {
  EXPECT_THAT(SaidBy(true), HasSubstr(std::get<Line>(GetParam()).expected));
}

TEST_P(Stderr, IsNeverWrittenToWhereItIsClosed) { EXPECT_THAT(SaidBy(false), IsEmpty()); }

std::string NameOf(const testing::TestParamInfo<Stderr::ParamType>& tested) {
  return std::string(std::get<0>(tested.param) == S_CTX_LOCAL ? "Srun" : "Sbatch") +
         std::get<Line>(tested.param).name;
}

// What a user can put into a message, with an end of a line and a code for terminals in it.
constexpr const char* kForged = "1\n[2026-01-01T00:00:00.000] error: forged \033[31m";

// slurmd's log, which root writes, if `Slurm().context` is slurmstepd's.
void SayForgedValues(LoadedPlugin& plugin) {
  for (const char* name : {"SONDE_REPORT", "SONDE_PORT_RANGE", "SONDE_MONITOR_STEPS"}) {
    Slurm().environment.push_back(std::string(name) + "=" + kForged);
    ::setenv(name, kForged, 1);
  }
  ::setenv("SLURM_TELEMETRY_EVENTS", kForged, 1);
  Slurm().items = {{S_JOB_ID, 7},
                   {S_JOB_STEPID, 0},
                   {S_JOB_NNODES, 1},
                   {S_JOB_UID, getuid()},
                   {S_JOB_GID, getgid()}};
  plugin.arguments.emplace_back(std::string("sondd=") + kForged);
  plugin.arguments[1] = "config=/dev/null";
  plugin.Call("slurm_spank_init");
  for (const char* option : {"period", "events", "mpi", "io", "tag"}) {
    LoadedPlugin::Give((std::string("telemetry-") + option).c_str(), kForged);
  }
  LoadedPlugin::Give("telemetry-level", "2");
  plugin.Call("slurm_spank_init_post_opt");
  if (Slurm().context == S_CTX_LOCAL) plugin.Call("slurm_spank_local_user_init");
}

class Message : public testing::TestWithParam<spank_context_t> {};

TEST_P(Message, IsOneLineWhateverAUserGives) {
  Slurm().context = GetParam();
  const std::string said = Said(true, SayForgedValues);
  std::istringstream lines(said);
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_THAT(line, testing::StartsWith("sonde: "));
  }
  EXPECT_GE(count, 6u) << said;
  EXPECT_THAT(said, HasSubstr("forged"));
  EXPECT_EQ(said.find('\033'), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Of, Message, testing::Values(S_CTX_LOCAL, S_CTX_ALLOCATOR, S_CTX_REMOTE));

INSTANTIATE_TEST_SUITE_P(Each, Stderr,
                         testing::Combine(testing::Values(S_CTX_LOCAL, S_CTX_ALLOCATOR),
                                          testing::ValuesIn(kLines)),
                         NameOf);

}  // namespace
}  // namespace sonde
