// What a step is called: by its name or, if nobody gave it one and its program is an interpreter,
// by the script that it runs. So "python3 -u train.py --epochs 3" is called train.py.
//
// A command is one text, its words joined by blanks without quotes, as profiles keep it. What is
// not plain, such as a program given as text (-c) or an option that is not known here, stays as it
// is.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

namespace sonde {

// The script or module that an interpreter runs: its file's name without directories, the module as
// it stands; "" for other programs, and where it is not plain. Knows python, bash and other shells,
// perl, Rscript, julia and java.
std::string ScriptOf(std::string_view command);

// `name` is the job's. Where nobody gave one it is empty or the command's first word, with or
// without its directory.
std::string StepTitle(std::string_view name, std::string_view command);

}  // namespace sonde
