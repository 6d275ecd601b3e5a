// Exporters that this node scrapes because the head said so: each by a `sonde join` of its own, a
// process that attaches to the socket for the application like any other.
//
// They end with this object. One that fails becomes a note.
//
// Thread safety: the loop's thread only.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/status.h"
#include "daemon/loop.h"
#include "web/source/scrape_target.h"

namespace sonde::node {

class Joiner {
 public:
  static constexpr size_t kMaxTargets = 16;

  // `socket` and `level` are what the step's tasks find in SONDE_SOCKET and SONDE_LEVEL.
  Joiner(Loop& loop, std::string socket, int level, std::function<void(std::string)> note)
      : loop_(loop), socket_(std::move(socket)), level_(level), note_(std::move(note)) {}
  ~Joiner();
  Joiner(const Joiner&) = delete;
  Joiner& operator=(const Joiner&) = delete;

  // An exporter that is scraped already is not started again.
  void Start(std::string_view target);

 private:
  struct Child {
    pid_t pid;
    UniqueFd pidfd;
  };

  Status Spawn(const web::ScrapeTarget& target);
  void OnExit(const std::string& url);

  Loop& loop_;
  std::string socket_;
  int level_;
  std::function<void(std::string)> note_;
  std::map<std::string, Child> children_;  // by URL
};

}  // namespace sonde::node
