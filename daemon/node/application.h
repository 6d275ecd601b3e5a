// What a node has to do with the application: takes what its tasks tell, by libsonde or as programs
// for metric-proxy do, and what is pushed to it, answers what they ask, has exporters scraped that
// the head names.
//
// Whatever fails becomes a note; the step goes on, and its processes are told that nobody answers.
//
// Thread safety: the loop's thread only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/socket_file.h"
#include "core/unique_fd.h"
#include "daemon/collect/app/app.h"
#include "daemon/collect/proxy/proxy.h"
#include "daemon/collect/sampler.h"
#include "daemon/launch_message.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "daemon/node/ask/ask_desk.h"
#include "daemon/node/joiner.h"
#include "daemon/node/record/pushed_source.h"
#include "daemon/node/record/recorder.h"

namespace sonde::node {

class Application {
 public:
  // The node. It is not called by the constructor, nor once this is gone.
  class Owner : public Joiner::Owner {
   public:
    // A task's question to the head; false if it cannot be asked now.
    virtual bool Ask(const tree::AskMessage& ask) = 0;

   protected:
    ~Owner() = default;
  };
  // `clock`: the node's, of its samples; `heads`: of what the head knows. These, `launch` and
  // `sampler` outlive this.
  Application(Loop& loop, const Clock& clock, const Clock& heads, const LaunchMessage& launch,
              collect::Sampler& sampler, Owner& owner);
  ~Application() { CloseProxy(); }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  // Where its tasks connect, as far as the launcher has made these sockets. Before Open.
  void TakeSockets(UniqueFd listener, SocketFile proxy) {
    listener_ = std::move(listener);
    proxy_socket_ = std::move(proxy);
  }
  // Before the first sample.
  void Open();
  void AddTask(uint32_t rank, pid_t pid);
  // Before the last sample, and at the latest before this process ends: programs for metric-proxy
  // find nobody any more.
  void CloseProxy();

  // What was told beside values since the last call, by the clock of this node.
  collect::Moments TakeMoments();
  // The values of the past that were told since the last call, to be recorded by `recorder`.
  void RecordPast(Recorder& recorder);
  // The bytes of a web::PushedValue.
  void TakePushed(std::string_view bytes);
  void Join(std::string_view target) { joiner_.Start(target); }
  void Unjoin(std::string_view target) { joiner_.Stop(target); }

  // The link to the head, whom the tasks ask.
  void OnConnected();
  void OnDisconnected(const Status& why);
  void OnAnswer(std::string_view payload);

 private:
  Status OpenSocket();
  Status OpenDesk();
  Status OpenProxy();
  void ReadProxy();

  Loop& loop_;
  const Clock& clock_;
  const Clock& heads_;
  const LaunchMessage& launch_;
  collect::Sampler& sampler_;
  Owner& owner_;
  UniqueFd listener_;
  SocketFile proxy_socket_;            // until it is open
  collect::AppSource* app_ = nullptr;  // the sampler's; nullptr: there is no socket
  bool said_past_full_ = false;
  std::unique_ptr<AskDesk> desk_;          // nullptr: nobody can ask
  PushedSource* pushed_ = nullptr;         // the sampler's; nullptr: nothing was pushed
  collect::ProxySource* proxy_ = nullptr;  // the sampler's; nullptr: there is no socket
  Loop::TimerId proxy_timer_ = 0;          // while it is not looked at
  Joiner joiner_;
};

}  // namespace sonde::node
