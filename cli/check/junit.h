// The result of `sonde check` for systems that read the results of tests (JUnit's XML, as Jenkins,
// GitLab and others take it): a test case for each number.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "cli/check/judged.h"

namespace sonde::cli {

// "60 s, usually 50 s: +20 %, where up to 4 % is noise".
std::string ChangeText(const JudgedNumber& number);

std::string CheckToJunit(const CheckedRun& run);

}  // namespace sonde::cli
