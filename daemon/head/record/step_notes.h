// The notes of a step as its profile has them: equal notes of several nodes become one with the
// nodes' names or, where these fill a line, their number. So no text stands there 10,000 times, and
// none keeps others out.
//
// What the note of a lost node says of the node's values is made when the notes are read: its last
// values may come later than the news of its loss, from the parent that has them.
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
  // such as ": no events"; notes with the same are one. What is a note of the step already is not
  // told of a node again.
  void AddOfNode(uint32_t node, std::string alone, std::string rest);
  // A node was lost. `counted`: whether the step's totals have what it counted, as far as is known
  // now; SetCounted changes that.
  void AddLost(uint32_t node, std::string why, bool counted);
  void SetCounted(uint32_t node, bool counted);

  // In the order in which each first came. `nodes` has the names.
  std::vector<std::string> Texts(const std::vector<NodeInfo>& nodes) const;

 private:
  struct Note {
    std::string text;         // of one node, or of the step; of lost nodes: why
    std::string rest;         // empty: of the step, or of lost nodes
    bool lost = false;        // the nodes were lost
    std::vector<bool> nodes;  // by index
    size_t count = 0;         // of them
  };

  // nullptr, and counted, if there is no room for another.
  Note* Make();
  static void AddNode(Note& note, uint32_t node);
  // The lost nodes of a note whose values are in the totals, or those whose values are not.
  void AddLostText(const Note& note, bool counted, const std::vector<NodeInfo>& nodes,
                   std::vector<std::string>& texts) const;

  std::vector<Note> notes_;
  std::vector<bool> counted_;  // of lost nodes, by index
  size_t dropped_ = 0;
};

}  // namespace sonde::head
