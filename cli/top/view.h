// What of a step is looked at: how deep, in which order, where the cursor is. Keys change it.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <string>

#include "cli/top/columns.h"

namespace sonde::cli::top {

class Model;

enum class Level : uint8_t { kNodes, kRanks, kCores };
enum class Panel : uint8_t { kNone, kHelp, kAlarms };

struct View {
  Level level = Level::kNodes;
  std::string host;  // of kRanks and kCores
  std::string rank;  // of kCores

  // Rows: the worst in a column first, or by name.
  bool by_name = false;
  Column sort = Column::kCpu;
  bool reversed = false;
  std::string filter;   // only nodes whose names contain it
  bool typing = false;  // the filter

  // The row under the cursor, by name: it stays on a row that moves. "": the row of the whole.
  std::string cursor;
  size_t top = 0;    // the first row that is shown
  size_t page = 20;  // rows that fit, as the layout had it last

  bool plot = false;
  Panel panel = Panel::kNone;
  size_t panel_top = 0;
};

struct Key {
  enum class Kind : uint8_t {
    kLetter,
    kUp,
    kDown,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kBack,  // Escape or Backspace
    kTab,
  };
  Kind kind = Kind::kLetter;
  char letter = 0;         // printable ASCII
  bool backspace = false;  // of kBack
};

// What a key does to the view; false: it ends the program.
bool Press(const Key& key, const Model& model, View& view);
// Moves the window so that the cursor is in it.
void ShowCursor(const Model& model, View& view);
// The name of a row, as the cursor has it: a host, or a number.
std::string RowName(const Model& model, const View& view, uint32_t row);
// The place of the cursor among the rows; 0 is the row of the whole.
size_t CursorPlace(const Model& model, const View& view);
// The host and rank that a plot is of; "": none, which is the whole step.
std::string PlottedHost(const View& view);
std::string PlottedRank(const View& view);

}  // namespace sonde::cli::top
