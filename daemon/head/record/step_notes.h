// The notes of a step as its profile has them: what several nodes tell alike is one note with the
// nodes' names or, where these fill a line, their number. So no text stands there 10,000 times, and
// none keeps others out.
//
// Thread safety: none; StepRecord guards it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/job.h"

namespace sonde::head {

class StepNotes {
 public:
  static constexpr size_t kMaxNotes = 32;  // different ones; of others the number is kept

  void Add(std::string text);
  // `alone`: the note while it is of this node only. `rest`: what follows the names of several,
  // such as ": no events"; notes with the same are one.
  void AddOfNode(uint32_t node, std::string alone, std::string rest);

  // In the order in which each first came. `nodes` has the names.
  std::vector<std::string> Texts(const std::vector<NodeInfo>& nodes) const;

 private:
  struct Note {
    std::string text;         // of one node, or of the step
    std::string rest;         // empty: of the step
    std::vector<bool> nodes;  // by index
    size_t count = 0;         // of them
  };

  // nullptr, and counted, if there is no room for another.
  Note* Make();

  std::vector<Note> notes_;
  size_t dropped_ = 0;
};

}  // namespace sonde::head
