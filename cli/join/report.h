// What `sonde join` says of its exporter to the daemon that started it: lines of text, into the
// pipe whose number is in SONDE_JOIN_REPORT.
//
//   up KIND URL   a scrape succeeded, the first one or the first after others failed; KIND is
//                 "Prometheus" or "Proxy"
//   down WHY      a scrape failed after others had succeeded, or the very first one
//
// Thread safety: none.
#pragma once

#include <string>
#include <string_view>

namespace sonde::join {

class Report {
 public:
  // Without the variable nothing is said.
  Report();
  void Up(std::string_view kind, const std::string& url);
  void Down(std::string_view why);

 private:
  void Say(std::string line);

  int fd_ = -1;
};

}  // namespace sonde::join
