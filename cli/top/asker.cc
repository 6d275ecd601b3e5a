#include "cli/top/asker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <boost/beast/http.hpp>
#include <mutex>
#include <utility>

#include "serve/head_client.h"

namespace sonde::cli::top {
namespace {

namespace http = boost::beast::http;

constexpr Nanos kTimeout = 8 * kSecond;

}  // namespace

// Shared with callbacks, which may come as long as the client is there.
struct Asker::Inbox {
  Inbox() : fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Inbox() {
    if (fd >= 0) ::close(fd);
  }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void Put(Reply reply) {
    const std::lock_guard lock(mutex);
    replies.push_back(std::move(reply));
    const uint64_t one = 1;
    static_cast<void>(::write(fd, &one, sizeof one) == sizeof one);
  }

  const int fd;
  std::mutex mutex;
  std::vector<Reply> replies;
};

Asker::Asker(std::shared_ptr<const Archive> archive, ProfileEntry entry)
    : archive_(std::move(archive)), entry_(std::move(entry)), inbox_(std::make_shared<Inbox>()) {}

Asker::~Asker() = default;

int Asker::fd() const { return inbox_->fd; }

void Asker::Send(Ask ask) {
  serve::HttpRequest request(ask.body.empty() ? http::verb::get : http::verb::post, ask.target, 11);
  if (!ask.body.empty()) {
    request.set(http::field::content_type, "application/json");
    request.body() = ask.body;
    request.prepare_payload();
  }
  auto question = serve::QuestionFor(entry_.endpoint, std::move(request), kTimeout);
  if (!question.ok()) return inbox_->Put({std::move(ask), question.status()});
  const std::string what = question->what;
  client_.Exchange(*std::move(question),
                   [inbox = inbox_, ask = std::move(ask), what](Result<serve::HttpAnswer> answer) {
                     inbox->Put({ask, answer.ok() ? serve::BodyOf(answer->response, what)
                                                  : Result<std::string>(answer.status())});
                   });
}

std::vector<Reply> Asker::Take() {
  const std::lock_guard lock(inbox_->mutex);
  uint64_t count = 0;
  static_cast<void>(::read(inbox_->fd, &count, sizeof count) == sizeof count);
  return std::exchange(inbox_->replies, {});
}

std::optional<JobDescription> Asker::LookForEnd() {
  Result<ProfileEntry> now = archive_->Entry(entry_.key);
  if (!now.ok()) return std::nullopt;
  if (now->running) {
    if (now->endpoint.port != 0) entry_.endpoint = now->endpoint;
    return std::nullopt;
  }
  return std::move(now->job);
}

}  // namespace sonde::cli::top
