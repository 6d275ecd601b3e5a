#include "daemon/node/application.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/collect/app/app.h"

namespace sonde::node {

Application::Application(Loop& loop, const Clock& clock, const Clock& heads,
                         const LaunchMessage& launch, collect::Sampler& sampler, Owner& owner)
    : loop_(loop),
      clock_(clock),
      heads_(heads),
      launch_(launch),
      sampler_(sampler),
      owner_(owner),
      joiner_(loop, launch.socket, launch.job.level,
              [this](std::string note) { owner_.Note(std::move(note)); }) {}

void Application::Open() {
  if (launch_.socket.empty()) return;
  for (const Status& opened : {OpenSocket(), OpenDesk()}) {
    if (!opened.ok()) owner_.Note(std::string(opened.message()));
  }
}

Status Application::OpenSocket() {
  collect::AppSource::Options options;
  options.socket = launch_.socket;
  options.listener = listener_.Release();
  options.uid = launch_.job.uid;
  options.level = launch_.job.level;
  options.period = launch_.job.period;
  options.clock = &clock_;
  Result<std::unique_ptr<collect::AppSource>> source = collect::AppSource::Open(options);
  if (!source.ok()) return source.status();
  take_moments_ = [app = source->get()] { return app->TakeMoments(); };
  sampler_.AddSource(*std::move(source));
  return {};
}

Status Application::OpenDesk() {
  AskDesk::Options options;
  options.socket = launch_.socket;
  options.uid = launch_.job.uid;
  options.level = launch_.job.level;
  options.period = launch_.job.period;
  options.clock = &heads_;
  Result<std::unique_ptr<AskDesk>> desk = AskDesk::Open(
      loop_, options, [this](const tree::AskMessage& ask) { return owner_.Ask(ask); });
  if (!desk.ok()) return desk.status();
  desk_ = *std::move(desk);
  return {};
}

collect::Moments Application::TakeMoments() {
  return take_moments_ ? take_moments_() : collect::Moments();
}

// The source is made with the first: most steps have none.
void Application::TakePushed(std::string_view bytes) {
  if (pushed_ == nullptr) {
    auto source = std::make_unique<PushedSource>();
    pushed_ = source.get();
    sampler_.AddSource(std::move(source));
  }
  pushed_->Take(bytes);
}

void Application::OnConnected() {
  if (desk_ != nullptr) desk_->Connected();
}

void Application::OnDisconnected(const Status& why) {
  if (desk_ == nullptr) return;
  desk_->Disconnected(fmt::format("no connection to the head of the step: {}", why.message()));
}

void Application::OnAnswer(std::string_view payload) {
  tree::AnswerMessage answer;
  if (desk_ != nullptr && Decode(payload, answer).ok()) desk_->OnAnswer(answer);
}

}  // namespace sonde::node
