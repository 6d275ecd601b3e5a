#include "daemon/node/application.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

namespace sonde::node {

Application::Application(Loop& loop, const Clock& clock, const Clock& heads,
                         const LaunchMessage& launch, collect::Sampler& sampler, Owner& owner)
    : loop_(loop),
      clock_(clock),
      heads_(heads),
      launch_(launch),
      sampler_(sampler),
      owner_(owner),
      joiner_(loop, launch.socket, launch.job.level, owner) {}

void Application::Open() {
  const bool named = !launch_.socket.empty();
  for (const Status& opened :
       {named ? OpenSocket() : Status(), named ? OpenDesk() : Status(), OpenProxy()}) {
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
  app_ = source->get();
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

// Its programs wait until what they write is read, so they are read at once.
Status Application::OpenProxy() {
  if (!proxy_socket_) return {};
  collect::ProxySource::Options options;
  options.uid = launch_.job.uid;
  auto source = collect::ProxySource::Open(options, std::move(proxy_socket_));
  if (!source.ok()) return source.status();
  proxy_ = source->get();
  sampler_.AddSource(*std::move(source));
  Status watched = loop_.Watch(proxy_->fd(), EPOLLIN, [this](uint32_t) { ReadProxy(); });
  if (!watched.ok()) CloseProxy();
  return watched;
}

// The client library writes each word of a message by itself. To wake for each would take as much
// of the processors as the program does; to come much later, a program would have filled its
// socket.
void Application::ReadProxy() {
  constexpr Nanos kPause = kMillisecond / 10;
  proxy_->Poll();
  if (!loop_.ChangeEvents(proxy_->fd(), 0).ok()) return;
  proxy_timer_ = loop_.After(kPause, [this] {
    proxy_timer_ = 0;
    static_cast<void>(loop_.ChangeEvents(proxy_->fd(), EPOLLIN));
  });
}

void Application::AddTask(uint32_t rank, pid_t pid) {
  if (proxy_ != nullptr) proxy_->AddTask(rank, pid);
}

void Application::CloseProxy() {
  proxy_socket_.Remove();
  if (proxy_ == nullptr || proxy_->fd() < 0) return;
  loop_.Unwatch(proxy_->fd());
  loop_.Cancel(proxy_timer_);
  proxy_->Close();
}

collect::Moments Application::TakeMoments() {
  return app_ == nullptr ? collect::Moments() : app_->TakeMoments();
}

void Application::RecordPast(Recorder& recorder) {
  if (app_ == nullptr) return;
  const std::vector<collect::PastValue> values = app_->TakePast();
  if (values.empty() || recorder.AddPast(values, app_->series()) || said_past_full_) return;
  said_past_full_ = true;
  owner_.Note("values of the past are missing: the node has no room for more");
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
  joiner_.TellAll();
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
