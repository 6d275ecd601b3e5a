// Asks the heads of the user's running steps for `sonde serve`: over HTTP, at the addresses in the
// archive's live/.
//
// Heads are asked at the same time, and each has the same time to answer: silent heads cost that
// time once, however many they are. A head that did not answer is left alone for some seconds.
//
// Thread safety: every method from any thread. None of them waits; the answers are handled where
// the tasks go on. Steps and specs that are given by reference live until a task ends.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/task.h"
#include "profiles/archive/archive.h"
#include "series/query/query.h"
#include "serve/http_client.h"
#include "web/source/data_source.h"

namespace sonde::serve {

class RunningHeads {
 public:
  static constexpr Nanos kTimeout = 10 * kSecond;
  static_assert(kTimeout > web::StepControl::kJoinPatience,
                "a head says why before its time is up");
  static constexpr Nanos kLeftAlone = 10 * kSecond;

  // `executor`: where answers are read. `timeout`: the time that a head has to answer.
  explicit RunningHeads(Executor executor = nullptr, Nanos timeout = kTimeout)
      : executor_(std::move(executor)), timeout_(timeout) {}

  // Whether a head can be asked about the step from here.
  static bool Has(const ProfileEntry& step);

  // The profile so far; the last one is kept for some hundred ms, since pages ask for several
  // things at once.
  Task<Result<Profile>> GetProfile(const ProfileEntry& step);
  // The profiles of the steps whose heads answer, by the profiles' keys.
  using Profiles = std::map<std::string, Profile>;
  Task<Profiles> GetProfiles(const std::vector<ProfileEntry>& steps);
  // The head's answer to a query whose filters on the tag `job` accept the step.
  Task<Result<web::Answer>> Query(const ProfileEntry& step, const QuerySpec& spec);
  // The heads' answers to a query, by the profiles' keys. All heads are asked at the same time, and
  // up to kAtOnce answers are held before they are read. Heads that do not answer are left out, as
  // are steps without a head; a refusal, such as of an answer that is too large, is an error.
  // kLimit if the answers have more points than that together: then no more answers are taken.
  using Told = std::map<std::string, web::Answer>;
  static constexpr size_t kAtOnce = 8;
  static constexpr size_t kMaxPoints = 32u << 20;
  Task<Result<Told>> QueryAll(const std::vector<ProfileEntry>& steps, const QuerySpec& spec,
                              size_t most_points = kMaxPoints);
  // The parts of a query's answer from the nodes of running steps, in the same way; an answer that
  // is no part is an error.
  using Parts = std::map<std::string, web::PartAnswer>;
  Task<Result<Parts>> QueryParts(const std::vector<ProfileEntry>& steps, const QuerySpec& spec,
                                 const QueryGrid& grid);
  // The step's tree, as /topo tells it.
  Task<Result<std::vector<web::TreeEdge>>> Tree(const ProfileEntry& step);
  // The head's answer to a request, whatever its status. 503 if there is none.
  Task<web::Response> Relay(const ProfileEntry& step, const web::Request& request);

 private:
  struct Known {
    Nanos silent_until = 0;  // monotonic
    Nanos taken = 0;
    Profile profile;
  };

  // `waits_for_others`: a head that does not answer in time is not silent for that.
  Task<Result<HttpAnswer>> Exchange(const ProfileEntry& step, HttpRequest request,
                                    std::shared_ptr<Turns> turns = nullptr,
                                    bool waits_for_others = false);
  Task<Result<Profile>> ProfileOf(const ProfileEntry& step, std::shared_ptr<Turns> turns);
  Task<Result<web::Answer>> QueryOne(const ProfileEntry& step, const QuerySpec& spec,
                                     std::shared_ptr<Turns> turns);
  Task<Result<web::PartAnswer>> QueryPartOf(const ProfileEntry& step, const QuerySpec& spec,
                                            const std::string& body, std::shared_ptr<Turns> turns);

  const Executor executor_;
  const Nanos timeout_;
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by the profile's key
  const HttpClient client_;             // last member: its callbacks use the others
};

}  // namespace sonde::serve
