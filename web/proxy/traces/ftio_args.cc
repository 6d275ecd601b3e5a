#include "web/proxy/traces/ftio_args.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>

#include "web/http/json_input.h"

namespace sonde::web {
namespace {

constexpr uint64_t kMaxFrequencies = 1000;

// How FTIO samples anew, and what belongs to methods that are not here.
constexpr std::string_view kWithoutEffect[] = {
    "freq",         "memory_limit",    "level",
    "wavelet",      "autocorrelation", "window_adaptation",
    "hits",         "filter_cutoff",   "filter_cutoff2",
    "filter_order", "custom_args"};

Status OnlyHere(std::string_view name, std::string_view what) {
  return {Code::kInvalid,
          fmt::format("{}: Sonde has {} only; FTIO itself reads /trace/json", name, what)};
}

// A choice of methods of which only one is here.
Status ReadMethod(const boost::json::value& value, std::string_view name, std::string_view here,
                  std::string_view what) {
  std::string text;
  SONDE_RETURN_IF_ERROR(ReadText(value, name, text));
  return text == here ? Status() : OnlyHere(name, what);
}

// Something that FTIO does besides.
Status ReadExtra(const boost::json::value& value, std::string_view name) {
  bool wanted = false;
  SONDE_RETURN_IF_ERROR(ReadBool(value, name, wanted));
  return wanted ? OnlyHere(name, "the transform and the autocorrelation") : Status();
}

Status ReadSeconds(const boost::json::value& value, std::string_view name,
                   std::optional<double>& out) {
  double seconds = 0;
  SONDE_RETURN_IF_ERROR(ReadNumber(value, name, seconds));
  if (!(seconds >= 0) || !std::isfinite(seconds)) {
    return Wrong(name, "seconds since the first point, not below 0");
  }
  out = seconds;
  return {};
}

Status ReadTolerance(const boost::json::value& value, std::string_view name, double& out) {
  SONDE_RETURN_IF_ERROR(ReadNumber(value, name, out));
  return out > 0 && out <= 1 ? Status() : Wrong(name, "a number above 0, 1 at most");
}

Status ReadFrequencies(const boost::json::value& value, std::string_view name, size_t& out) {
  uint64_t count = 0;
  SONDE_RETURN_IF_ERROR(ReadCount(value, name, count));
  if (count > kMaxFrequencies) return Wrong(name, fmt::format("0 to {}", kMaxFrequencies));
  out = count;
  return {};
}

Status ReadField(const boost::json::value& value, std::string_view name, FtioArgs& args) {
  if (name == "ts") return ReadSeconds(value, name, args.start);
  if (name == "te") return ReadSeconds(value, name, args.end);
  if (name == "tol") return ReadTolerance(value, name, args.options.tolerance);
  if (name == "n_freq") return ReadFrequencies(value, name, args.options.frequencies);
  if (name == "no_psd") {
    bool amplitudes = false;
    SONDE_RETURN_IF_ERROR(ReadBool(value, name, amplitudes));
    args.options.power = !amplitudes;
    return {};
  }
  if (name == "transformation") return ReadMethod(value, name, "dft", "dft");
  if (name == "outlier") return ReadMethod(value, name, "z-score", "z-score");
  if (name == "periodicity_detection") return ReadMethod(value, name, "", "the autocorrelation");
  if (name == "filter_type") return ReadMethod(value, name, "", "what was measured, unfiltered,");
  if (name == "dtw" || name == "fourier_fit") return ReadExtra(value, name);
  if (std::find(std::begin(kWithoutEffect), std::end(kWithoutEffect), name) ==
      std::end(kWithoutEffect)) {
    return NoSuchField(name, "an argument that /ftio/args names");
  }
  return {};
}

}  // namespace

Result<FtioArgs> ReadFtioArgs(std::string_view json) {
  return WithObject<FtioArgs>(json, [](const boost::json::object& object) -> Result<FtioArgs> {
    FtioArgs args;
    for (const auto& [name, value] : object) {
      if (!value.is_null()) SONDE_RETURN_IF_ERROR(ReadField(value, View(name), args));
    }
    if (args.end && *args.end <= args.start.value_or(0)) return Wrong("te", "a time after ts");
    return args;
  });
}

Result<FtioArgs> KeptFtioArgs(const KeptSettings& kept) {
  const std::string text = kept.Get();
  return text.empty() ? FtioArgs() : ReadFtioArgs(text);
}

void WriteFtioArgs(const FtioArgs& args, JsonWriter& json) {
  const auto number = [&](std::string_view name, const std::optional<double>& value) {
    json.Key(name);
    value ? json.Value(*value) : json.Null();
  };
  json.BeginObject().Field("freq", -1).Key("memory_limit").Null();
  number("ts", args.start);
  number("te", args.end);
  json.Field("transformation", "dft").Key("level").Null().Key("wavelet").Null();
  json.Field("outlier", "z-score").Key("periodicity_detection").Null();
  json.Field("tol", args.options.tolerance).Field("dtw", false);
  json.Field("no_psd", !args.options.power).Field("n_freq", args.options.frequencies);
  json.Field("fourier_fit", false).Field("autocorrelation", true);
  for (const char* name : {"window_adaptation", "hits", "filter_type", "filter_cutoff",
                           "filter_cutoff2", "filter_order", "custom_args"}) {
    json.Key(name).Null();
  }
  json.EndObject();
}

}  // namespace sonde::web
