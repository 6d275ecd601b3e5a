#include "spank/plugin_options.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "core/text/options.h"
#include "core/text/user_tags.h"

namespace sonde::spank {
namespace {

enum Id { kLevel, kPeriod, kEvents, kMpi, kIo, kFunctions, kAlarms, kTag, kRendezvous };

// SPANK's numbers: an argument is required, or optional.
enum Argument { kRequired = 1, kOptional = 2 };

struct Option {
  const char* name;
  const char* argument;
  Argument has_argument;
  const char* usage;
  // Slurm takes an option from this variable as if it stood on the command line, and carries it
  // into the job and its steps, whatever --export says.
  const char* variable;
  const char* default_variable;  // the user's own; null: none

  // The variable in which Slurm itself carries the option's value, without its first part.
  const char* carrier() const { return variable + std::string_view("SLURM_SPANK_").size(); }
};

constexpr Option kOptions[] = {
    {"telemetry-level", "0..4", kRequired,
     "watch the step: 0 off, 1 application, 2 system, 3 counters, GPUs and power, 4 details",
     "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_level", "SLURM_TELEMETRY_LEVEL"},
    {"telemetry-period", "TIME", kRequired,
     "time between two samples, 10ms to 1h (1s unless given)",
     "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_period", "SLURM_TELEMETRY_PERIOD"},
    {"telemetry-events", "LIST", kRequired,
     "hardware events to count at level 3, separated by commas",
     "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_events", "SLURM_TELEMETRY_EVENTS"},
    {"telemetry-mpi", "yes|no", kOptional, "count and time MPI calls; level 4 does unless told no",
     "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_mpi", "SLURM_TELEMETRY_MPI"},
    {"telemetry-io", "yes|no", kOptional,
     "count and time calls for files; level 4 does unless told no",
     "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_io", "SLURM_TELEMETRY_IO"},
    {"telemetry-functions", "yes|no", kOptional,
     "count calls of functions compiled with -finstrument-functions; level 4 does unless told no",
     "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_functions", "SLURM_TELEMETRY_FUNCTIONS"},
    {"telemetry-alarms", "FILE", kRequired, "rules of alarms to raise besides those built in",
     "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_alarms", "SLURM_TELEMETRY_ALARMS"},
    {"telemetry-tag", "NAME=VALUE,...", kRequired,
     "tags by which the profile is found and listed; keep: it is not deleted",
     "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_tag", "SLURM_TELEMETRY_TAG"},
    {"telemetry-rendezvous", "PORT:KEY", kRequired,
     "set by srun for the nodes of a step; not for use by hand",
     "SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_rendezvous", nullptr},
};

Status Invalid(const Option& option, std::string_view text, std::string_view expected) {
  std::string message = "--";
  message.append(option.name).append("=").append(text.substr(0, 128)).append(": ");
  message.append(expected);
  return {Code::kInvalid, std::move(message)};
}

std::string Absolute(std::string_view path) {
  char directory[4096];
  if (path.empty() || path.front() == '/' || ::getcwd(directory, sizeof(directory)) == nullptr) {
    return std::string(path);
  }
  return std::string(directory) + "/" + std::string(path);
}

// Without an argument "yes"; Slurm carries none into a job's steps as "(null)".
bool SetSwitch(std::string_view text, std::optional<bool>& value) {
  if (!text.empty() && text != "(null)" && text != "yes" && text != "no") return false;
  value = text != "no";
  return true;
}

bool FitsTags(std::string_view list) {
  return list.size() <= kMaxUserTagList && ValidUserTagList(list);
}

Status SetOption(int id, const char* text, PluginOptions& options) {
  const std::string_view value = text == nullptr ? "" : text;
  switch (id) {
    case kLevel: {
      const int level = ParseLevel(value);
      if (level < 0) return Invalid(kOptions[id], value, kLevelExpected);
      options.asked.level = level;
      return {};
    }
    case kPeriod: {
      const Nanos period = ParsePeriod(value);
      if (period < 0) return Invalid(kOptions[id], value, kPeriodExpected);
      options.asked.period = period;
      return {};
    }
    case kEvents:
      if (!ValidEventList(value)) return Invalid(kOptions[id], value, kEventListExpected);
      options.asked.events = value;
      return {};
    case kMpi:
    case kIo:
    case kFunctions: {
      std::optional<bool>& counted = id == kMpi  ? options.mpi
                                     : id == kIo ? options.io
                                                 : options.functions;
      if (SetSwitch(value, counted)) return {};
      return Invalid(kOptions[id], value, "expected yes or no");
    }
    case kAlarms:
      options.alarms = value;
      return {};
    case kTag:
      if (!FitsTags(value)) return Invalid(kOptions[id], value, kUserTagsExpected);
      options.tags = value;
      return {};
    case kRendezvous:
      options.rendezvous = value;
      return {};
    default:
      return {Code::kInternal, "Slurm named an option that was not registered"};
  }
}

// A level of a newer release.
bool IsNumber(const char* text) {
  const std::string_view digits = text == nullptr ? "" : text;
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string JoinTags(const std::string& first, std::string_view second) {
  return first.empty() ? std::string(second) : first + "," + std::string(second);
}

// Given again, the option adds to its earlier values. Slurm gives what is in the environment in
// front of what was typed, as if it had been typed too; for the components of a heterogeneous step
// some releases give it more than once.
Status TakeLocalTags(std::string_view value, PluginOptions& options, std::string& dropped) {
  const char* const inherited = std::getenv(kOptions[kTag].variable);
  if (inherited != nullptr && value == inherited) {
    if (!options.typed_tags.empty()) return {};
    SONDE_RETURN_IF_ERROR(SetOption(kTag, inherited, options));
    options.inherited_tags = value;
    return {};
  }
  std::string typed = JoinTags(options.typed_tags, value);
  if (!FitsTags(typed)) return Invalid(kOptions[kTag], value, kUserTagsExpected);
  if (!FitsTags(JoinTags(options.inherited_tags, typed))) {
    options.inherited_tags.clear();
    dropped =
        "the inherited tags are dropped, as there is no room for them beside those of "
        "--telemetry-tag";
  }
  options.tags = JoinTags(options.inherited_tags, typed);
  options.typed_tags = std::move(typed);
  return {};
}

// Whether the file of alarm rules, if there is one, can be read.
Status CheckAlarms(const PluginOptions& options) {
  if (options.alarms.empty() || ::access(options.alarms.c_str(), R_OK) == 0) return {};
  const Status failed = SystemError("read the file");
  return Invalid(kOptions[kAlarms], options.alarms,
                 "expected a file of alarm rules: " + std::string(failed.message()));
}

}  // namespace

Status RegisterOptions(spank_t spank, spank_opt_cb_f callback) {
  for (int id = 0; id < static_cast<int>(std::size(kOptions)); ++id) {
    const Option& option = kOptions[id];
    // Slurm copies the texts; its struct is older than const.
    spank_option given{const_cast<char*>(option.name),
                       const_cast<char*>(option.argument),
                       const_cast<char*>(option.usage),
                       option.has_argument,
                       id,
                       callback};
    const spank_err_t error = spank_option_register(spank, &given);
    if (error != ESPANK_SUCCESS) {
      return {Code::kInternal,
              std::string("register option --") + option.name + ": " + spank_strerror(error)};
    }
  }
  return {};
}

Status TakeLocalOption(int id, const char* text, PluginOptions& options, std::string& dropped) {
  if (id == kTag) return TakeLocalTags(text == nullptr ? "" : text, options, dropped);
  SONDE_RETURN_IF_ERROR(SetOption(id, text, options));
  if (id != kAlarms) return {};
  options.alarms = Absolute(options.alarms);
  return CheckAlarms(options);
}

std::vector<std::string> SetDefaultsFromEnvironment() {
  std::vector<std::string> wrong;
  for (int id = 0; id < static_cast<int>(std::size(kOptions)); ++id) {
    const Option& option = kOptions[id];
    // Parsed by itself, as if no other option were given.
    PluginOptions alone;
    const auto check = [&](const char* from, const char* value) {
      std::string dropped;
      const Status status = TakeLocalOption(id, value, alone, dropped);
      if (!status.ok()) wrong.push_back(std::string(status.message()) + " (" + from + "); ignored");
      return status.ok();
    };
    const char* value = std::getenv(option.variable);
    if (value != nullptr && !check("inherited", value)) {
      ::unsetenv(option.variable);
      ::unsetenv(option.carrier());  // nodes would take it from there
    }
    value = option.default_variable ? std::getenv(option.default_variable) : nullptr;
    if (value != nullptr && std::getenv(option.variable) == nullptr &&
        check(option.default_variable, value)) {
      ::setenv(option.variable, value, 1);
    }
    if (!alone.alarms.empty() && std::getenv(option.variable) != nullptr) {
      ::setenv(option.variable, alone.alarms.c_str(), 1);
    }
  }
  return wrong;
}

std::string TellIgnored(int id, const char* text) {
  const Option& option = kOptions[id];
  const std::string_view value = text == nullptr ? "" : text;
  if (std::getenv(option.variable) != nullptr || (id == kLevel && value == "0")) return "";
  return "telemetry is switched off here (enable=accept in plugstack.conf); --" +
         std::string(option.name) + " is ignored";
}

Status TakeRemoteOption(int id, const char* text, PluginOptions& options) {
  const uint32_t bit = 1u << id;
  options.given |= bit;
  const Status status = SetOption(id, text, options);
  if (status.ok()) return {};
  std::string taken = "ignored";
  if (id == kLevel && IsNumber(text)) {
    options.asked.level = kHighestLevel;
    taken = "level " + std::to_string(kHighestLevel) + ", the highest known here, is taken";
  }
  if ((options.told & bit) != 0) return {};
  options.told |= bit;
  return {status.code(), std::string(status.message()) + "; " + taken};
}

void TakeOptionsOfScript(const launch::Environment& environment, PluginOptions& options,
                         const std::function<void(const Status&)>& wrong) {
  for (int id = 0; id < kRendezvous; ++id) {
    const std::optional<std::string_view> value = environment.Find(kOptions[id].variable);
    if (!value || (options.given & 1u << id) != 0) continue;
    const Status status = TakeRemoteOption(id, std::string(*value).c_str(), options);
    if (!status.ok()) wrong(status);
  }
}

void SettleOptions(spank_t spank, const PluginOptions& options) {
  // Slurm itself knows the values as they were typed, of an option given twice the last.
  const auto carry = [spank](const Option& option, const std::string& value) {
    if (value.empty()) return;
    if (std::getenv(option.variable) != nullptr) ::setenv(option.variable, value.c_str(), 1);
    ::setenv(option.carrier(), value.c_str(), 1);
    spank_job_control_setenv(spank, option.carrier(), value.c_str(), 1);
  };
  carry(kOptions[kAlarms], options.alarms);
  carry(kOptions[kTag], options.tags);
  // By now Slurm has the value, and tells the nodes with each step's launch.
  const Option& rendezvous = kOptions[kRendezvous];
  ::unsetenv(rendezvous.variable);
  ::unsetenv(rendezvous.carrier());
  spank_job_control_unsetenv(spank, rendezvous.carrier());
}

void OfferRendezvous(const std::string& value) {
  // An inherited rendezvous belongs to another step.
  if (value.empty()) {
    ::unsetenv(kOptions[kRendezvous].variable);
  } else {
    ::setenv(kOptions[kRendezvous].variable, value.c_str(), 1);
  }
}

// Slurm has no call for this. It gives the place of its own copy, which it will send to the nodes.
Status RevealRendezvous(spank_t spank, const std::string& value) {
  const Option& option = kOptions[kRendezvous];
  spank_option asked{};
  asked.name = const_cast<char*>(option.name);
  asked.has_arg = option.has_argument;
  char* place = nullptr;
  const spank_err_t error = spank_option_getopt(spank, &asked, &place);
  if (error != ESPANK_SUCCESS || place == nullptr || value.size() != std::strlen(place)) {
    return {Code::kInternal,
            std::string("tell the nodes the step's key: ") +
                (error != ESPANK_SUCCESS ? spank_strerror(error) : "the option was changed")};
  }
  value.copy(place, value.size());  // the end of the text stays
  return {};
}

void HideRendezvous(spank_t spank) {
  spank_unsetenv(spank, kOptions[kRendezvous].variable);
  spank_unsetenv(spank, kOptions[kRendezvous].carrier());
}

}  // namespace sonde::spank
