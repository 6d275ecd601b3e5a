// Orders the changes of db/: one at a time, and short work does not wait for long work.
//
// Long work (an ingest, a prune, an import, compacting) pauses where nothing of it is half done;
// short work (the tags of a profile) comes in there. Work for which db/ is closed (a repair) lets
// no other work in, and callers that come meanwhile are told so at once.
//
// Thread safety: any thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "core/status.h"

namespace sonde {

class ArchiveTurns {
 public:
  class Turn {
   public:
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), short_(other.short_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->End(short_);
    }

   private:
    friend class ArchiveTurns;
    Turn(ArchiveTurns* turns, bool is_short) : turns_(turns), short_(is_short) {}
    ArchiveTurns* turns_;
    bool short_;
  };

  // Waits for other long work and for short work.
  Turn Long() { return Begin(false); }
  // The same, but does not wait for other long work; none if there is some.
  std::optional<Turn> LongIfFree();
  // Waits for other long work; has no pauses.
  Turn Alone() { return Begin(true); }
  // At once or in the next pause; kBusy while a turn of Alone lasts.
  Result<Turn> Short();
  // Called by the owner of a long turn: whether short work waits.
  bool IsWanted();
  // Lets short work in.
  void Pause();
  // A pause for as long as it lives, for work during which others may change db/.
  class Rest {
   public:
    explicit Rest(ArchiveTurns& turns) : turns_(turns) { turns_.Yield(); }
    Rest(const Rest&) = delete;
    Rest& operator=(const Rest&) = delete;
    ~Rest() { turns_.Resume(); }

   private:
    ArchiveTurns& turns_;
  };

 private:
  Turn Begin(bool alone);
  void End(bool is_short);
  void Yield();
  void Resume();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool long_ = false;   // there is a long turn, perhaps in a pause
  bool alone_ = false;  // and it lets no other work in
  bool rests_ = false;  // it is in a long pause
  bool busy_ = false;   // some thread changes db/ now
  int waiting_ = 0;     // short turns that wait
};

}  // namespace sonde
