// The heads of the user's running steps, as `sonde serve` asks them: over HTTP, where the archive's
// live/ says that they are served.
//
// A head that did not answer is left alone for some seconds, so that one that hangs does not hold
// up what others can answer.
//
// Thread safety: every method from any thread; they block up to kTimeout.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cli/http_client.h"
#include "profiles/archive.h"
#include "series/query.h"
#include "web/data_source.h"

namespace sonde::cli {

class RunningHeads {
 public:
  static constexpr Nanos kTimeout = 10 * kSecond;
  static constexpr Nanos kLeftAlone = 10 * kSecond;

  // Whether a head can be asked about the step.
  static bool Has(const ProfileEntry& step) { return step.running && step.endpoint.port != 0; }

  // The profile so far; the last one is kept for some hundred ms, for pages ask for several things
  // at once.
  Result<Profile> GetProfile(const ProfileEntry& step);
  // The head's answer to a query whose filters on the tag `job` accept the step.
  Result<web::Answer> Query(const ProfileEntry& step, const QuerySpec& spec);
  // What heads answer to a query, by the profiles' keys; they are asked at the same time, kAtOnce
  // of them. Those that do not answer are left out, as are steps without a head; a refusal, such as
  // of an answer that is too large, is an error. kLimit if together they have more points than
  // that: no further heads are asked then.
  using Told = std::map<std::string, web::Answer>;
  static constexpr size_t kAtOnce = 8;
  static constexpr size_t kMaxPoints = 32u << 20;
  Result<Told> QueryAll(const std::vector<ProfileEntry>& steps, const QuerySpec& spec,
                        size_t most_points = kMaxPoints);
  // What the nodes of running steps come to for a query, in the same way; any answer that is no
  // part is an error.
  using Parts = std::map<std::string, web::PartAnswer>;
  Result<Parts> QueryParts(const std::vector<ProfileEntry>& steps, const QuerySpec& spec,
                           const QueryGrid& grid);
  // The step's tree, as /topo tells it.
  Result<std::vector<web::TreeEdge>> Tree(const ProfileEntry& step);
  // The head's answer to a request, whatever it is. 503 if there is none.
  web::Response Relay(const ProfileEntry& step, const web::Request& request);

 private:
  struct Known {
    Nanos silent_until = 0;  // monotonic
    Nanos taken = 0;
    Profile profile;
  };

  Result<HttpResponse> Exchange(const ProfileEntry& step, HttpRequest request);

  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by the profile's key
};

}  // namespace sonde::cli
