// Asks the head of a running step what a Model wants to know, and finds out that the step has
// ended.
//
// A head that dies may be followed by a node's daemon at another address, and a head that ends
// closes its server first: so where nobody answers, the archive is looked at.
//
// Thread safety: one thread. Send does not wait; answers come on the HTTP client's thread, which
// only puts them into a list.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/top/questions.h"
#include "core/job.h"
#include "core/status.h"
#include "profiles/archive/archive.h"
#include "serve/http_client.h"

namespace sonde::cli::top {

struct Reply {
  Ask ask;
  Result<std::string> answer;
};

class Asker {
 public:
  Asker(std::shared_ptr<const Archive> archive, ProfileEntry entry);
  ~Asker();
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  void Send(Ask ask);
  // What has come since; in any order.
  std::vector<Reply> Take();
  // Readable while there is something to take.
  int fd() const;
  // Looks into the archive, after an answer failed; the step's description if it has ended.
  std::optional<JobDescription> LookForEnd();

 private:
  struct Inbox;

  const std::shared_ptr<const Archive> archive_;
  ProfileEntry entry_;
  const std::shared_ptr<Inbox> inbox_;
  // Last: its destructor drops the requests under way.
  serve::HttpClient client_;
};

}  // namespace sonde::cli::top
