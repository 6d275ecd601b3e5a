// Who changes db/ when: one at a time, and what is short not behind what takes long.
//
// Long work (an ingest, a prune, an import, compacting) pauses where nothing of it is half done;
// short work (the tags of a profile) comes in there. Work for which db/ is closed (a repair) lets
// nobody in, and who comes meanwhile is told so at once.
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

  // Behind other long work, and whatever is short.
  Turn Long() { return Begin(false); }
  // The same without waiting for other long work; none if there is some.
  std::optional<Turn> LongIfFree();
  // Behind other long work, with no pauses.
  Turn Alone() { return Begin(true); }
  // At once or in the next pause; kBusy while somebody is alone.
  Result<Turn> Short();
  // By who has a long turn: whether something short waits.
  bool IsWanted();
  // Lets it in.
  void Pause();
  // The same for as long as it lives, for work that others may change db/ beside.
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
  bool long_ = false;   // somebody has a long turn, perhaps in a pause of it
  bool alone_ = false;  // and lets nobody in
  bool rests_ = false;  // has a long pause
  bool busy_ = false;   // somebody changes db/ now
  int waiting_ = 0;     // short ones
};

}  // namespace sonde
