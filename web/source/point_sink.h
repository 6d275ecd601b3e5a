// Where /api/put writes: a store that takes points over HTTP. The archive and a running step are
// not such stores.
//
// Thread safety: from any thread.
#pragma once

#include <set>
#include <string>

#include "core/metric.h"
#include "core/status.h"
#include "core/time.h"
#include "web/source/notes.h"

namespace sonde::web {

struct PutPoint {
  std::string metric;
  Tags tags;
  Nanos time = 0;
  double value = 0;
  bool integer = false;  // written without a fraction; OpenTSDB distinguishes that
  int64_t whole = 0;     // then the value, which a double may not hold
};

class PointSink {
 public:
  virtual ~PointSink() = default;

  // The last value for a time counts. kInvalid for names that OpenTSDB does not accept, kLimit if
  // the store is full.
  virtual Status Put(PutPoint point) = 0;
  // Replaces the note of the same start and series.
  virtual Status PutNote(Note note) = 0;
  // The note of that second and series; kNotFound.
  virtual Result<Note> FindNote(const std::string& tsuid, Nanos start) const = 0;
  // Removes the notes of these series that begin in [first, last], "" for notes of no series; gives
  // how many were removed.
  virtual size_t RemoveNotes(const std::set<std::string>& tsuids, Nanos first, Nanos last) = 0;
};

}  // namespace sonde::web
