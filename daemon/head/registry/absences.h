// The nodes that are away: their connections are lost, and each has a while to come back.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.h"
#include "daemon/loop.h"

namespace sonde::head {

class Absences {
 public:
  // A node that has not come back in time.
  struct Overdue {
    uint32_t node;
    std::string why;  // it went away
    Nanos since;      // by the step's clock
    bool operator==(const Overdue&) const = default;
  };
  class Owner {
   public:
    // They are away no more. Ascending.
    virtual void OnOverdue(const std::vector<Overdue>& nodes) = 0;

   protected:
    ~Owner() = default;
  };

  // `clock`: the step's.
  Absences(Loop& loop, const Clock& clock, Owner& owner)
      : loop_(loop), clock_(clock), owner_(owner) {}
  ~Absences() { loop_.Cancel(timer_); }
  Absences(const Absences&) = delete;
  Absences& operator=(const Absences&) = delete;

  void Add(uint32_t node, std::string why, Nanos limit);
  // It is back, or nobody waits for it any more.
  void Remove(uint32_t node);
  // Why it is away, and since when, by the step's clock; nothing: it is not away.
  std::optional<Overdue> Of(uint32_t node) const;
  // None of those that are away now stays away longer than this.
  void Hurry(Nanos limit);
  // All that are away; they are away no more.
  std::vector<Overdue> TakeAll() { return TakeUntil(INT64_MAX); }

 private:
  struct Absence {
    Nanos until;  // monotonic
    std::string why;
    Nanos since;
  };

  using Due = std::pair<Nanos, uint32_t>;  // until, node
  using Queue = std::priority_queue<Due, std::vector<Due>, std::greater<>>;

  std::vector<Overdue> TakeUntil(Nanos time);
  void DropOver();
  void Schedule();

  Loop& loop_;
  const Clock& clock_;
  Owner& owner_;
  std::unordered_map<uint32_t, Absence> away_;  // by node
  Queue in_time_;     // of each its due, and dues of absences that are over, until they are found
  Nanos latest_ = 0;  // nobody is due later
  Nanos armed_ = 0;   // when the timer is due
  Loop::TimerId timer_ = 0;
};

}  // namespace sonde::head
