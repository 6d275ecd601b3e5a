// What a node has to do with the application: takes what its tasks tell and what is pushed to it,
// answers what they ask, has exporters scraped that the head names.
//
// Whatever fails becomes a note; the step goes on, and its processes are told that nobody answers.
//
// Thread safety: the loop's thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/collect/app/moments.h"
#include "daemon/collect/sampler.h"
#include "daemon/launch_message.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "daemon/node/ask/ask_desk.h"
#include "daemon/node/joiner.h"
#include "daemon/node/record/pushed_source.h"

namespace sonde::node {

class Application {
 public:
  // The node. It is not called by the constructor, nor once this is gone.
  class Owner {
   public:
    // A task's question to the head; false if it cannot be asked now.
    virtual bool Ask(const tree::AskMessage& ask) = 0;
    // What a reader of the profile must know.
    virtual void Note(std::string text) = 0;

   protected:
    ~Owner() = default;
  };
  // `clock`: the node's, of its samples; `heads`: of what the head knows. These, `launch` and
  // `sampler` outlive this.
  Application(Loop& loop, const Clock& clock, const Clock& heads, const LaunchMessage& launch,
              collect::Sampler& sampler, Owner& owner);

  // Where its tasks connect, if the launcher has made that socket. Before Open.
  void TakeSocket(UniqueFd listener) { listener_ = std::move(listener); }
  // Before the first sample.
  void Open();

  // What was told beside values since the last call, by the clock of this node.
  collect::Moments TakeMoments();
  // The bytes of a web::PushedValue.
  void TakePushed(std::string_view bytes);
  void Join(std::string_view target) { joiner_.Start(target); }

  // The link to the head, whom the tasks ask.
  void OnConnected();
  void OnDisconnected(const Status& why);
  void OnAnswer(std::string_view payload);

 private:
  Status OpenSocket();
  Status OpenDesk();

  Loop& loop_;
  const Clock& clock_;
  const Clock& heads_;
  const LaunchMessage& launch_;
  collect::Sampler& sampler_;
  Owner& owner_;
  UniqueFd listener_;
  std::function<collect::Moments()> take_moments_;  // empty: there is no socket
  std::unique_ptr<AskDesk> desk_;                   // nullptr: nobody can ask
  PushedSource* pushed_ = nullptr;                  // the sampler's; nullptr: nothing was pushed
  Joiner joiner_;
};

}  // namespace sonde::node
