// Shared by the subcommands that report to the running step, as an application does through
// libsonde: put, annotate, phase, figure.
//
// Like libsonde they do nothing where there is no telemetry, and succeed: a script needs no test.
// With --strict they report it and fail. Wrong usage is an error either way.
//
// Thread safety: one thread, main's.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace sonde::cli {

inline constexpr std::string_view kStrictHelp = "Fail, and say why, if it is not recorded";

// NAME=VALUE, the value a finite number.
Result<std::pair<std::string, double>> ParseAssignment(std::string_view text);
// KEY=VALUE.
Result<std::pair<std::string, std::string>> ParseTag(std::string_view text);
Status CheckUnit(std::string_view unit);

// The exit code for `code`, a code of sonde.h that libsonde gave for `what`.
int Told(std::string_view what, int code, bool strict);

}  // namespace sonde::cli
