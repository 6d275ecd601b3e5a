// From what is known to what stands on the terminal: a pure function of model, view and size.
//
// A frame has, from top to bottom: the step in a few lines, which also say what is missing and
// which node or rank stands out; a table with a row for the whole and a row each for nodes, ranks
// or cores; below it, if wanted, a column over time; the keys. Columns that do not fit are left out
// from the right, but never the one that sorts.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "cli/top/model.h"
#include "cli/top/screen.h"
#include "cli/top/view.h"
#include "core/time.h"

namespace sonde::cli::top {

struct Look {
  size_t width = 80;
  size_t height = 24;
  bool unicode = true;
  Nanos now = 0;
  bool keys = true;  // the foot names the keys
};

inline constexpr size_t kLeastWidth = 40;
inline constexpr size_t kLeastHeight = 8;

Screen Draw(const Model& model, const View& view, const Look& look);
// How many rows of the table fit: the view's `page`.
size_t PageOf(const Model& model, const View& view, const Look& look);
// How many points a plot of that width can show.
size_t PlotPoints(const Look& look);
// The height at which all rows fit.
size_t FullHeight(const Model& model, const View& view, const Look& look);

// Parts of a frame, for layout.cc and its tests.
using Parts = std::vector<Part>;
// Puts groups beside each other, three blanks between them, in as many lines as that takes; all but
// the first begin with `indent` blanks.
std::vector<Parts> Flow(const std::vector<Parts>& groups, size_t width, size_t indent = 0);
// The lines above the table.
std::vector<Parts> HeadLines(const Model& model, const View& view, const Look& look);
void PutParts(Screen& screen, size_t x, size_t y, const Parts& parts);

struct Box {
  size_t x = 0;
  size_t y = 0;
  size_t width = 0;
  size_t height = 0;
};
// The title of the columns, the row of the whole, and rows from view.top on.
void DrawTable(const Model& model, const View& view, const Look& look, const Box& box,
               Screen& screen);
// A column over time, with a line of words above and the time below it.
void DrawPlot(const Model& model, const Box& box, Screen& screen);
// Help, or the alarms, in place of the table.
std::vector<Parts> HelpLines(const Model& model, const Look& look);
std::vector<Parts> AlarmLines(const Model& model, const Look& look);

}  // namespace sonde::cli::top
