#include "web/source/step_control.h"

namespace sonde::web {
namespace {

Status DoesNotRun(const JobStep& id) {
  return {Code::kNotFound, "step " + id.ToString() + " does not run any more"};
}

}  // namespace

void StepControl::Forward(const JobStep& /*id*/, const Request& /*request*/,
                          ForwardCallback callback) const {
  callback(std::nullopt);
}

void StepControl::Tree(const JobStep& id, TreeCallback callback) const { callback(DoesNotRun(id)); }

Status StepControl::Push(const JobStep& id, const PushedValue& /*value*/) const {
  return DoesNotRun(id);
}

Status StepControl::PauseCounters(const JobStep& id, bool /*paused*/) const {
  return DoesNotRun(id);
}

Result<std::vector<AlarmState>> StepControl::Alarms(const JobStep& id) const {
  return DoesNotRun(id);
}

Status StepControl::AddAlarm(const JobStep& id, const alarms::Rule& /*rule*/) const {
  return DoesNotRun(id);
}

Status StepControl::RemoveAlarm(const JobStep& id, const std::string& /*name*/) const {
  return DoesNotRun(id);
}

Result<std::string> StepControl::Join(const JobStep& id, const ScrapeTarget& /*target*/,
                                      const std::string& /*node*/) const {
  return DoesNotRun(id);
}

}  // namespace sonde::web
