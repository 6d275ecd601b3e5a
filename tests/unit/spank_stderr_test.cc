// What the plugin writes to the user of srun, sbatch and salloc, with a Slurm of this file's own
// around the plugin: all of it where stderr is open, and not one byte where it is closed.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "spank/slurm_spank.h"

namespace sonde {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Numbers in some releases.
constexpr auto kDone = static_cast<spank_err_t>(ESPANK_SUCCESS);
constexpr auto kFailed = static_cast<spank_err_t>(ESPANK_ERROR);

spank_context_t slurm_context = S_CTX_LOCAL;
bool slurm_registers = true;
std::map<std::string, spank_option> slurm_options;

// As Slurm does, whatever the descriptor is.
void Say(const char* format, va_list arguments) {
  ::vdprintf(STDERR_FILENO, format, arguments);
  ::dprintf(STDERR_FILENO, "\n");
}

}  // namespace
}  // namespace sonde

#define SONDE_SAYS(name)               \
  void name(const char* format, ...) { \
    va_list arguments;                 \
    va_start(arguments, format);       \
    sonde::Say(format, arguments);     \
    va_end(arguments);                 \
  }

#pragma GCC visibility push(default)
extern "C" {

SONDE_SAYS(slurm_error)
SONDE_SAYS(slurm_info)
SONDE_SAYS(slurm_verbose)
SONDE_SAYS(slurm_debug)
SONDE_SAYS(slurm_spank_log)

spank_context_t spank_context() { return sonde::slurm_context; }
const char* spank_strerror(spank_err_t) { return "an error"; }
spank_err_t spank_option_register(spank_t, spank_option* option) {
  if (!sonde::slurm_registers) return sonde::kFailed;
  sonde::slurm_options[option->name] = *option;
  return sonde::kDone;
}
spank_err_t spank_option_getopt(spank_t, spank_option*, char**) { return sonde::kFailed; }
spank_err_t spank_get_item(spank_t, spank_item_t, ...) { return sonde::kFailed; }
spank_err_t spank_setenv(spank_t, const char*, const char*, int) { return sonde::kDone; }
spank_err_t spank_unsetenv(spank_t, const char*) { return sonde::kDone; }
spank_err_t spank_job_control_setenv(spank_t, const char*, const char*, int) {
  return sonde::kDone;
}
spank_err_t spank_job_control_unsetenv(spank_t, const char*) { return sonde::kDone; }

}  // extern "C"
#pragma GCC visibility pop

namespace sonde {
namespace {

// The plugin in a process of its own.
class Plugin {
 public:
  Plugin() : library_(::dlopen(SONDE_PLUGIN, RTLD_LAZY | RTLD_LOCAL)) {}
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin() {
    if (library_ != nullptr) ::dlclose(library_);
  }

  bool loaded() const { return library_ != nullptr; }
  void Call(const char* callback) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    const auto function = reinterpret_cast<spank_f*>(::dlsym(library_, callback));
    if (function != nullptr) function(nullptr, static_cast<int>(argv.size()), argv.data());
  }
  static void Type(const char* option, const char* value) {
    const spank_option& given = slurm_options.at(option);
    given.cb(given.val, value, 0);
  }

  std::vector<std::string> arguments{"sonded=/nonexistent/sonded",
                                     "config=/nonexistent/sonde.conf"};

 private:
  void* const library_;
};

void UseIn(int pipe, const std::function<void(Plugin&)>& calls) {
  Plugin plugin;
  ::dup2(pipe, STDERR_FILENO);
  if (!plugin.loaded()) {
    ::dprintf(pipe, "not loaded: %s\n", ::dlerror());
  } else {
    calls(plugin);
  }
}

// What is written to descriptor 2 meanwhile. Not `open`: that is closed when the process begins,
// and the number is given to a pipe of the process's own once plugins are loaded.
std::string Said(bool open, const std::function<void(Plugin&)>& calls) {
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
  std::function<void(Plugin&)> calls;
};

void PrintTo(const Line& line, std::ostream* out) { *out << line.name; }

const Line kLines[] = {
    {"WrongArgument", "unknown argument 'sondd'",
     [](Plugin& plugin) {
       plugin.arguments.emplace_back("sondd=/x");
       plugin.Call("slurm_spank_init");
     }},
    {"OptionsRefused", "register option --telemetry-level",
     [](Plugin& plugin) {
       slurm_registers = false;
       plugin.Call("slurm_spank_init");
     }},
    {"WrongVariable", "--telemetry-period=1ms",
     [](Plugin& plugin) {
       ::setenv("SLURM_TELEMETRY_PERIOD", "1ms", 1);
       plugin.Call("slurm_spank_init");
     }},
    {"WrongOption", "--telemetry-level=7",
     [](Plugin& plugin) {
       plugin.Call("slurm_spank_init");
       Plugin::Type("telemetry-level", "7");
     }},
    {"IgnoredOption", "--telemetry-level is ignored",
     [](Plugin& plugin) {
       plugin.arguments.emplace_back("enable=accept");
       plugin.Call("slurm_spank_init");
       Plugin::Type("telemetry-level", "2");
     }},
    {"LoweredOption", "at most 1 here",
     [](Plugin& plugin) {
       char conf[] = "/tmp/sonde-conf-XXXXXX";
       const int file = ::mkstemp(conf);
       ::dprintf(file, "max_level = 1\n");
       plugin.arguments[1] = std::string("config=") + conf;
       plugin.Call("slurm_spank_init");
       Plugin::Type("telemetry-level", "2");
       plugin.Call("slurm_spank_init_post_opt");
       if (slurm_context == S_CTX_LOCAL) plugin.Call("slurm_spank_local_user_init");
       plugin.Call("slurm_spank_exit");
       ::unlink(conf);
     }},
    {"NoHead", "no telemetry for step",
     [](Plugin& plugin) {
       slurm_context = S_CTX_LOCAL;
       plugin.Call("slurm_spank_init");
       Plugin::Type("telemetry-level", "2");
       plugin.Call("slurm_spank_init_post_opt");
       plugin.Call("slurm_spank_local_user_init");
       plugin.Call("slurm_spank_exit");
     }},
};

class Stderr : public testing::TestWithParam<std::tuple<spank_context_t, Line>> {
 protected:
  static std::string SaidBy(bool open) {
    const auto& [context, line] = GetParam();
    slurm_context = context;
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

INSTANTIATE_TEST_SUITE_P(Each, Stderr,
                         testing::Combine(testing::Values(S_CTX_LOCAL, S_CTX_ALLOCATOR),
                                          testing::ValuesIn(kLines)),
                         NameOf);

}  // namespace
}  // namespace sonde
