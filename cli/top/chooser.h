// The list of running steps from which one is chosen.
//
// Thread safety: values, and functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/top/layout.h"
#include "cli/top/questions.h"
#include "core/job.h"
#include "core/status.h"

namespace sonde::cli::top {

struct Choice {
  JobDescription job;
  double cpu = kNoValue;  // of the CPUs allotted
  bool silent = false;    // its head did not answer last
};

// What to ask a head for the step's CPU time.
Ask CpuAsk(const JobDescription& job);
void TakeCpu(const Result<std::string>& answer, Choice& choice);

struct Chosen {
  size_t place = 0;
  size_t top = 0;
};
// What a key does; false: it ends the program. Enter sets `done`.
bool Press(const Key& key, size_t count, Chosen& chosen, bool& done);
Screen DrawChoices(const std::vector<Choice>& choices, const Chosen& chosen, const Look& look);

}  // namespace sonde::cli::top
