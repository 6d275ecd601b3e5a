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

std::string_view ToString(LinkTree::State state) {
  switch (state) {
    case LinkTree::State::kConnected:
      return "connected";
    case LinkTree::State::kAway:
      return "away";
    case LinkTree::State::kLost:
      return "lost";
    case LinkTree::State::kLeft:
      break;
  }
  return "left";
}

void StepControl::Links(const JobStep& id, LinkTreeCallback callback) const {
  callback(DoesNotRun(id));
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

std::string_view ToString(Exporter::State state) {
  switch (state) {
    case Exporter::State::kStarting:
      return "starting";
    case Exporter::State::kUp:
      return "up";
    case Exporter::State::kDown:
      return "down";
    case Exporter::State::kFailed:
      return "failed";
  }
  return "";
}

void StepControl::Join(const JobStep& id, const ScrapeTarget& /*target*/,
                       const std::string& /*node*/, JoinCallback callback) const {
  callback(DoesNotRun(id));
}

void StepControl::Exporters(const JobStep& id, ExportersCallback callback) const {
  callback(DoesNotRun(id));
}

void StepControl::Unjoin(const JobStep& id, const std::string& /*instance*/,
                         UnjoinCallback callback) const {
  callback(DoesNotRun(id));
}

}  // namespace sonde::web
