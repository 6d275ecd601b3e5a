// What a client saved for its requests that follow, such as the parameters that metric-proxy's page
// of FTIO saves: a text, kept in memory as long as this source lives. A step's head and each user's
// `sonde serve` have their own, so nobody's settings meet another user.
//
// Thread safety: any thread.
#pragma once

#include <mutex>
#include <string>

namespace sonde::web {

class KeptSettings {
 public:
  // "" until something is kept.
  std::string Get() const;
  void Keep(std::string text);

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace sonde::web
