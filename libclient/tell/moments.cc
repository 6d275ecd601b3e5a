// The functions of sonde.h that tell moments: remarks, phases, figures of merit.
#include <errno.h>
#include <string.h>

#include "core/clocks.h"
#include "libclient/error.h"
#include "libclient/library.h"

namespace sonde::client {
namespace {

int NoMemory() { return Fail(SONDE_SYSTEM, "no memory for what is told: %s", strerror(errno)); }

struct Telling {
  uint8_t kind;
  std::string_view text;
  double value = 0;
  std::string_view unit = {};
};

void Write(uint64_t ticket, const Telling& told) {
  WriteMoment(library.segment, ticket, told.kind, told.text, told.value, told.unit);
}

// The process is attached. Takes the mutex only while the ring grows.
int Tell(const Telling& told) {
  const uint64_t ticket = Ring<Moments>::Draw(library.segment);
  if (!library.moments.HasPlace(ticket)) {
    const Lock lock;
    if (!library.moments.Extend(library.segment, ticket)) return NoMemory();
  }
  Write(ticket, told);
  return SONDE_OK;
}

// Mutex held, so that begin and end of a phase are recorded in the order of the calls.
int TellInOrder(const Telling& told) {
  const uint64_t ticket = Ring<Moments>::Draw(library.segment);
  if (!library.moments.HasPlace(ticket) && !library.moments.Extend(library.segment, ticket)) {
    return NoMemory();
  }
  Write(ticket, told);
  return SONDE_OK;
}

// Mutex held: makes the counter of the seconds in a phase, once; a failure leaves it out.
void CountPhase(OpenPhase* phase, const char* name) {
  if (phase->counted) return;
  phase->counted = true;
  const sonde_tag_t tag = {kPhaseTag, name};
  int code = SONDE_OK;
  phase->counter =
      Register({kTypeCounter, kPhaseCounter, "seconds", kPhaseHelp, 0, &tag, 1}, &code);
}

// Mutex held.
int Begin(const char* name) {
  int code = Attach();
  const std::string_view text = Text(name);
  if (code == SONDE_OK) code = CheckText("phase", text, kMaxNameLength);
  if (code != SONDE_OK) return code;
  OpenPhase* const phase = library.phases.Find(text, true);
  if (phase == nullptr) {
    return Fail(SONDE_LIMIT, "the phase '%s' is left out: there are %zu phases already",
                Quoted(text).c_str(), Phases::kMax);
  }
  if (phase->depth++ != 0) return SONDE_OK;
  CountPhase(phase, name);
  phase->since = MonotonicNow();
  return TellInOrder({kMomentPhaseBegin, text});
}

// Mutex held. `counter` and `seconds`: what to add once it is not held any more.
int End(const char* name, sonde_metric_t** counter, double* seconds) {
  int code = Attach();
  const std::string_view text = Text(name);
  if (code == SONDE_OK) code = CheckText("phase", text, kMaxNameLength);
  if (code != SONDE_OK) return code;
  OpenPhase* const phase = library.phases.Find(text, false);
  if (phase == nullptr || phase->depth == 0) {
    return Fail(SONDE_INVALID, "the phase '%s' ends and has not begun", Quoted(text).c_str());
  }
  if (--phase->depth != 0) return SONDE_OK;
  *counter = phase->counter;
  *seconds = static_cast<double>(MonotonicNow() - phase->since) * 1e-9;
  return TellInOrder({kMomentPhaseEnd, text});
}

int Remark(const char* remark) {
  int code = AttachIfNeeded();
  const std::string_view text = Text(remark);
  if (code == SONDE_OK) code = CheckText("remark", text, kMaxRemark);
  return code == SONDE_OK ? Tell({kMomentRemark, text}) : code;
}

int Judge(const char* name, double value, const char* unit) {
  int code = AttachIfNeeded();
  const std::string_view text = Text(name);
  if (code == SONDE_OK) code = CheckName("figure", text, kMaxNameLength);
  if (code == SONDE_OK) code = CheckUnit(text, Text(unit));
  if (code == SONDE_OK && !__builtin_isfinite(value)) {
    code = Fail(SONDE_INVALID, "the value of the figure '%s' is not finite", Quoted(text).c_str());
  }
  return code == SONDE_OK ? Tell({kMomentFigure, text, value, Text(unit)}) : code;
}

int FinishNamed(int code, const char* text) {
  return Finish(code, text == nullptr ? "(no text)" : text);
}

}  // namespace
}  // namespace sonde::client

SONDE_EXPORT int sonde_annotate(const char* text) {
  sonde::client::ClearError();
  return sonde::client::FinishNamed(sonde::client::Remark(text), text);
}

SONDE_EXPORT int sonde_phase_begin(const char* name) {
  sonde::client::ClearError();
  int code = SONDE_OK;
  {
    const sonde::client::Lock lock;
    code = sonde::client::Begin(name);
  }
  return sonde::client::FinishNamed(code, name);
}

SONDE_EXPORT int sonde_phase_end(const char* name) {
  sonde::client::ClearError();
  sonde_metric_t* counter = nullptr;
  double seconds = 0;
  int code = SONDE_OK;
  {
    const sonde::client::Lock lock;
    code = sonde::client::End(name, &counter, &seconds);
  }
  sonde_add(counter, seconds);
  return sonde::client::FinishNamed(code, name);
}

SONDE_EXPORT int sonde_figure(const char* name, double value, const char* unit) {
  sonde::client::ClearError();
  return sonde::client::FinishNamed(sonde::client::Judge(name, value, unit), name);
}
