// Exporters that this node scrapes because the head said so: each by a `sonde join` of its own, a
// process that attaches to the socket for the application like any other, and that writes how it is
// with the exporter into a pipe (cli/join/report.h).
//
// They end with this object. The head is told how each is. One that was recorded and is no more
// becomes a note.
//
// Thread safety: the loop's thread only.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "core/status.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "web/source/scrape_target.h"

namespace sonde::node {

class Joiner {
 public:
  static constexpr size_t kMaxTargets = 16;

  // Takes what becomes of exporters.
  class Owner {
   public:
    virtual void OnJoined(const tree::JoinedMessage& exporter) = 0;
    // What a reader of the profile must know.
    virtual void Note(std::string text) = 0;

   protected:
    ~Owner() = default;
  };

  // `socket` and `level` are what the step's tasks find in SONDE_SOCKET and SONDE_LEVEL. `command`:
  // the program sonde, "" for the one beside this program, else the installed one.
  Joiner(Loop& loop, std::string socket, int level, Owner& owner, std::string command = "")
      : loop_(loop),
        socket_(std::move(socket)),
        level_(level),
        owner_(owner),
        command_(std::move(command)) {}
  ~Joiner();
  Joiner(const Joiner&) = delete;
  Joiner& operator=(const Joiner&) = delete;

  // An exporter that is scraped already is not started again, and one that was just stopped only
  // when its process has ended. It is tried once; if that fails, it is not tried any more.
  void Start(std::string_view target);
  void Stop(std::string_view target);
  // Says of each again how it is: to another head.
  void TellAll();

 private:
  struct Child {
    pid_t pid = -1;
    UniqueFd pidfd;
    UniqueFd report;  // what it writes
    std::string unread;
    tree::JoinedMessage last;
    bool told = false;      // it has said something
    bool recorded = false;  // it was scraped at least once
    bool stopped = false;   // it ends, perhaps only after a scrape, and nothing more is said of it
    std::string next;       // the target that is wanted again by then; "": none
  };

  Status Spawn(const web::ScrapeTarget& target, Child& child);
  void OnReport(const std::string& url);
  void ReadReport(Child& child);
  void OnLine(Child& child, std::string_view line);
  void OnExit(const std::string& url);

  Loop& loop_;
  std::string socket_;
  int level_;
  Owner& owner_;
  const std::string command_;
  std::map<std::string, std::unique_ptr<Child>> children_;  // by URL
  // What was recorded before: its counts are in the record, and are not to come in again.
  static constexpr size_t kMostRecorded = 1024;
  std::set<std::string> recorded_;
};

}  // namespace sonde::node
