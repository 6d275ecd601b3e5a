// How metric-proxy's clients want periods to be found: the arguments that its proxy hands to FTIO,
// a JSON object. Sonde finds periods itself (insight/periods.h) and has one method: of the
// arguments that choose another one each is refused by name. What a resampling, a wavelet or the
// adaptation of a window would be given changes nothing here and is not read.
//
// Thread safety: values and functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "insight/periods.h"
#include "profiles/json/writer.h"
#include "web/source/kept_settings.h"

namespace sonde::web {

struct FtioArgs {
  insight::PeriodOptions options;
  std::optional<double> start, end;  // ts and te: seconds since the first point
};

// Of a request's text. Members that are missing or null keep the default; kInvalid for what is
// wrong or not there.
Result<FtioArgs> ReadFtioArgs(std::string_view json);

// What was saved last, as WriteFtioArgs wrote it, or the defaults.
Result<FtioArgs> KeptFtioArgs(const KeptSettings& kept);

// With every member that metric-proxy has, those that do not count as null.
void WriteFtioArgs(const FtioArgs& args, JsonWriter& json);

}  // namespace sonde::web
