// The exporters that nodes scrape because somebody asked the head for it: what each node says of
// each, and who still waits for its first word.
//
// Of each node there are kMaxOfNode at most: the one that failed first makes room for another.
// A node that has gone scrapes nothing, and is forgotten. Another head learns of exporters from the
// nodes, which tell it when they come to it.
//
// Thread safety: the loop's thread only, callbacks too.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "web/source/step_control.h"

namespace sonde::head {

class Exporters {
 public:
  static constexpr size_t kMaxOfNode = 64;

  // `send` gives a node a message; false: it is not there. `host` is a node's name.
  using Send = std::function<bool(uint32_t node, tree::Type type, std::string_view payload)>;
  using HostOf = std::function<std::string(uint32_t node)>;
  Exporters(Loop& loop, const Clock& clock, Send send, HostOf host)
      : loop_(loop), clock_(clock), send_(std::move(send)), host_(std::move(host)) {}
  ~Exporters();
  Exporters(const Exporters&) = delete;
  Exporters& operator=(const Exporters&) = delete;

  // As web::StepControl has them. Callbacks may be called at once, and are not if this ends first.
  void Join(const std::vector<uint32_t>& nodes, const web::ScrapeTarget& target,
            web::StepControl::JoinCallback done);
  Status Unjoin(const std::string& instance);
  // By node and URL.
  std::vector<web::Exporter> List() const;

  // A kJoined of a node.
  void OnJoined(uint32_t node, std::string_view payload);
  void OnGone(uint32_t node);

 private:
  using Key = std::pair<uint32_t, std::string>;  // a node, and the URL that it was asked to scrape
  struct Known {
    web::Exporter exporter;
    uint64_t failed = 0;  // in the order of the failures
  };
  using Map = std::map<Key, Known>;
  struct Waiting {
    std::string url;
    std::set<uint32_t> pending;
    std::vector<std::string> scraping;  // hosts
    std::vector<std::string> failed;    // "HOST: why"
    web::StepControl::JoinCallback done;
    Loop::TimerId timer = {};
  };

  std::pair<Map::iterator, Map::iterator> OfNode(uint32_t node);
  // Whether the node may have one more.
  bool MakeRoom(uint32_t node);
  void Heard(uint32_t node, const std::string& url, bool scraping, const std::string& why);
  void Finish(std::list<Waiting>::iterator waiting);

  Loop& loop_;
  const Clock& clock_;
  Send send_;
  HostOf host_;
  Map exporters_;
  uint64_t failures_ = 0;
  std::list<Waiting> waiting_;
};

}  // namespace sonde::head
