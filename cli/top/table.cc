// The table: a heat bar and a number for each value.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/top/layout.h"
#include "core/time.h"

namespace sonde::cli::top {
namespace {

constexpr size_t kNumber = 5;    // letters of a value
constexpr size_t kGap = 2;       // before a column
constexpr size_t kLeastBar = 3;  // below that a bar is one cell that stands upright
constexpr size_t kMostBar = 14;
constexpr size_t kLeastColumn = kGap + 1 + kNumber;
constexpr Nanos kOldest = 30 * kSecond;  // values of rows that were not asked for since

struct Shape {
  size_t name = 0;
  std::vector<Column> columns;
  std::vector<size_t> bars;  // how wide the bar of each is; 1: upright
  size_t StepOf(size_t i) const { return kGap + bars[i] + (bars[i] > 1 ? 1 : 0) + kNumber; }
};

// A row as it is shown.
struct Row {
  std::string name;
  Values values = kNoValues;
  std::string words;  // behind the values, or in their place
  bool bad = false;   // the words stand in the place of the values
  bool dim = false;
};

std::string Since(const Node& node, Nanos now) {
  if (node.newest == 0) return "";
  return fmt::format(" since {} ({})", TimeOfDay(node.newest), ClockText(now - node.newest));
}

Row RowOf(const Node& node, const Model& model, Nanos now) {
  Row row{node.host, node.values, "", false, false};
  const std::string note = node.note.empty() ? "" : ": " + node.note;
  if (node.lost) {
    row.words = fmt::format("lost, no values{}{}", Since(node, now), note);
    row.bad = true;
  } else if (node.left != 0) {
    row.words = fmt::format("has ended its tasks at {}{}", TimeOfDay(node.left), note);
    row.bad = row.dim = true;
  } else if (node.silent) {
    row.words = fmt::format("no values{}{}", Since(node, now), note);
    row.bad = true;
  } else if (!model.ended() && now - node.taken > std::max(kOldest, 5 * model.interval())) {
    row.values = kNoValues;
  }
  return row;
}

Row RowOf(const Rank& rank) {
  Row row{fmt::format("rank {}", rank.rank), rank.values, "", false, false};
  if (!std::isnan(rank.core)) row.words = fmt::format("core {:.0f}", rank.core);
  return row;
}

Row RowOf(const Core& core, const Model& model) {
  Row row{fmt::format("core {}", core.number), kNoValues, "", false, false};
  row.values[IndexOf(Column::kCpu)] = core.busy;
  for (const size_t place : core.ranks) {
    const Rank& rank = model.ranks()[place];
    row.words += fmt::format("{}rank {} ({})", row.words.empty() ? "" : ", ", rank.rank,
                             ValueOf(Column::kCpu, rank.values[IndexOf(Column::kCpu)]));
  }
  return row;
}

Row RowAt(const Model& model, const View& view, uint32_t place, Nanos now) {
  switch (view.level) {
    case Level::kNodes:
      return RowOf(model.nodes()[place], model, now);
    case Level::kRanks:
      return RowOf(model.ranks()[place]);
    case Level::kCores:
      return RowOf(model.cores()[place], model);
  }
  return {};
}

Row WholeRow(const Model& model, const View& view) {
  if (view.level == Level::kNodes) return {"all nodes", model.totals(), "", false, false};
  const Node* node = model.Find(view.host);
  const Values values = node == nullptr ? kNoValues : node->values;
  return {"the node", values, "", false, false};
}

size_t WidestName(const Model& model, const View& view) {
  size_t widest = 9;  // "all nodes"
  if (view.level != Level::kNodes) return widest;
  const std::vector<uint32_t>& order = model.Order(view);
  // Of those near the window: to look at all names takes longer than to draw.
  for (size_t i = view.top; i < std::min(order.size(), view.top + view.page + 1); ++i) {
    widest = std::max(widest, LettersOf(model.nodes()[order[i]].host));
  }
  return widest;
}

// What room is left makes bars wide: first those of shares, which are looked at most.
void WidenBars(size_t room, Shape& shape) {
  shape.bars.assign(shape.columns.size(), 1);
  size_t left = room - std::min(room, shape.columns.size() * kLeastColumn);
  for (const bool ratio : {true, false}) {
    const auto of_kind = [&](Column column) { return InfoOf(column).ratio == ratio; };
    const auto count =
        static_cast<size_t>(std::count_if(shape.columns.begin(), shape.columns.end(), of_kind));
    if (count == 0) continue;
    const size_t bar = std::min(left / count, ratio ? kMostBar : kMostBar / 2);
    if (bar < kLeastBar) continue;
    left -= bar * count;
    for (size_t i = 0; i < shape.columns.size(); ++i) {
      if (of_kind(shape.columns[i])) shape.bars[i] = bar;
    }
  }
}

Shape ShapeOf(const Model& model, const View& view, size_t width) {
  Shape shape;
  shape.columns = model.Shown(view);
  shape.name = std::min(WidestName(model, view), std::max<size_t>(width / 4, 9)) + 1;
  const size_t words = view.level == Level::kRanks ? 9 : 0;
  const size_t room = width - std::min(width, shape.name + words);
  const size_t fit = std::max<size_t>(room / kLeastColumn, 1);
  if (shape.columns.size() > fit) {
    const auto sort = std::find(shape.columns.begin(), shape.columns.end(), view.sort);
    const auto place = static_cast<size_t>(sort - shape.columns.begin());
    if (!view.by_name && sort != shape.columns.end() && place >= fit) {
      shape.columns[fit - 1] = view.sort;
    }
    shape.columns.resize(fit);
  }
  WidenBars(room, shape);
  if (view.level == Level::kCores) shape.bars[0] = std::min<size_t>(shape.bars[0], 10);
  return shape;
}

Style HeatOf(Column column, double share) {
  if (!InfoOf(column).ratio) return Style::kCool;
  if (InfoOf(column).low_is_worst) {
    return share >= 0.8 ? Style::kGood : share >= 0.5 ? Style::kWarn : Style::kBad;
  }
  const double much = column == Column::kMemory ? 0.75 : 0.2;
  const double most = column == Column::kMemory ? 0.9 : 0.5;
  return share < much ? Style::kGood : share < most ? Style::kWarn : Style::kBad;
}

// `share` of a bar from 0 to 1, in eighths of a cell where the terminal can.
void DrawBar(Screen& screen, size_t x, size_t y, size_t width, double share, Style style) {
  share = std::clamp(share, 0.0, 1.0);
  if (width == 1) {
    constexpr std::string_view kSteps = " .:-=+*#@";
    const auto eighths = static_cast<size_t>(std::lround(share * 8));
    const auto letter = screen.unicode() ? (eighths == 0 ? U' ' : U'\u2580' + eighths)
                                         : static_cast<char32_t>(kSteps[eighths]);
    screen.PutLetter(x, y, letter, style);
    return;
  }
  if (!screen.unicode()) {
    const auto full = static_cast<size_t>(std::lround(share * static_cast<double>(width)));
    for (size_t i = 0; i < width; ++i) {
      screen.PutLetter(x + i, y, i < full ? U'#' : U'.', i < full ? style : Style::kDim);
    }
    return;
  }
  const auto eighths = static_cast<size_t>(std::lround(share * static_cast<double>(width * 8)));
  for (size_t i = 0; i < width; ++i) {
    const size_t here = std::min<size_t>(eighths - std::min(eighths, i * 8), 8);
    if (here == 0) {
      screen.PutLetter(x + i, y, U'\u00b7', Style::kDim);
    } else {
      // From the full block, U+2588, down to an eighth of it, U+258F.
      screen.PutLetter(x + i, y, U'\u2588' + static_cast<char32_t>(8 - here), style);
    }
  }
}

void DrawValue(Screen& screen, size_t x, size_t y, const Shape& shape, size_t place, double value,
               double scale) {
  const Column column = shape.columns[place];
  const double share = InfoOf(column).ratio ? value : scale > 0 ? value / scale : 0;
  const Style heat = HeatOf(column, share);
  const bool known = !std::isnan(value);
  if (known) DrawBar(screen, x + kGap, y, shape.bars[place], share, heat);
  screen.PutRight(x + shape.StepOf(place), y, ValueOf(column, value),
                  !known                 ? Style::kDim
                  : heat == Style::kCool ? Style::kPlain
                                         : heat);
}

void DrawTitles(const Model& model, const View& view, const Shape& shape, const Box& box,
                Screen& screen) {
  constexpr std::string_view kNames[] = {"node", "rank", "core"};
  const std::string_view mark =
      screen.unicode() ? (view.reversed ? "\u25b2" : "\u25bc") : (view.reversed ? "^" : "v");
  const std::string name =
      fmt::format("0 {}{}", kNames[static_cast<size_t>(view.level)], view.by_name ? mark : "");
  screen.Paint(box.y, Style::kTitle);
  screen.Put(box.x, box.y, name, Style::kTitle, shape.name);
  const std::vector<Column> all = model.Shown(view);
  // Short titles for all of a kind if one is too long; those that count bytes are the other kind.
  bool long_fit[2] = {true, true};
  for (size_t i = 0; i < shape.columns.size(); ++i) {
    const ColumnInfo& info = InfoOf(shape.columns[i]);
    const size_t letters = info.title.size() + 2 + (shape.columns[i] == view.sort ? 1 : 0);
    if (letters >= shape.StepOf(i)) long_fit[info.ratio ? 1 : 0] = false;
  }
  size_t x = box.x + shape.name;
  for (size_t i = 0; i < shape.columns.size(); ++i) {
    const Column column = shape.columns[i];
    const ColumnInfo& info = InfoOf(column);
    const auto number =
        static_cast<size_t>(std::find(all.begin(), all.end(), column) - all.begin()) + 1;
    const bool sorts = !view.by_name && column == view.sort && view.level != Level::kCores;
    const std::string end(sorts ? mark : "");
    const std::string_view text = long_fit[info.ratio ? 1 : 0] ? info.title : info.short_title;
    std::string title = fmt::format("{} {}{}", number, text, end);
    if (LettersOf(title) >= shape.StepOf(i)) title = fmt::format("{}{}{}", number, text, end);
    x += shape.StepOf(i);
    screen.PutRight(x, box.y, title, Style::kTitle);
  }
  if (view.level == Level::kCores) screen.Put(x + kGap, box.y, "ranks on it", Style::kTitle);
  const size_t left_out = all.size() - shape.columns.size();
  if (left_out > 0 && box.width > x + 4) {
    screen.PutRight(box.width, box.y, fmt::format("+{}", left_out), Style::kTitle);
  }
}

void DrawRow(const Row& row, const Shape& shape, const Values& scales, const Box& box, size_t y,
             Screen& screen) {
  screen.Put(box.x, y, row.name,
             row.dim   ? Style::kDim
             : row.bad ? Style::kBad
                       : Style::kPlain,
             shape.name - 1);
  size_t x = box.x + shape.name;
  if (row.bad) {
    screen.Put(x + kGap, y, "-  " + row.words, row.dim ? Style::kDim : Style::kBad);
    return;
  }
  for (size_t i = 0; i < shape.columns.size(); ++i) {
    const size_t column = IndexOf(shape.columns[i]);
    DrawValue(screen, x, y, shape, i, row.values[column], scales[column]);
    x += shape.StepOf(i);
  }
  if (!row.words.empty()) screen.Put(x + kGap, y, row.words, Style::kDim);
}

// What a full bar means where a value is no share: the largest of the rows that are shown.
Values ScalesOf(const std::vector<Row>& rows) {
  Values scales{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) {
      if (!row.bad && row.values[i] > scales[i]) scales[i] = row.values[i];
    }
  }
  return scales;
}

std::string WhyEmpty(const Model& model, const View& view) {
  if (view.level == Level::kNodes && !view.filter.empty()) {
    return fmt::format("no node's name contains '{}'; Esc shows all", view.filter);
  }
  if (view.level == Level::kNodes) return "no node has come yet";
  if (model.ended()) return "the step has ended; what was not looked at before is not known";
  return view.level == Level::kRanks ? "no rank has given values yet, or the node has none"
                                     : "no core is known yet";
}

}  // namespace

void DrawTable(const Model& model, const View& view, const Look& look, const Box& box,
               Screen& screen) {
  if (box.height < 2) return;
  if (model.columns().empty()) {
    screen.Put(box.x, box.y,
               model.job().level < 2 ? "nodes are not measured: run with --telemetry-level=2"
                                     : "no values yet");
    return;
  }
  const Shape shape = ShapeOf(model, view, box.width);
  DrawTitles(model, view, shape, box, screen);
  const std::vector<uint32_t>& order = model.Order(view);
  const size_t place = CursorPlace(model, view);
  std::vector<Row> rows;
  for (size_t i = view.top; i < order.size() && rows.size() + 2 < box.height; ++i) {
    rows.push_back(RowAt(model, view, order[i], look.now));
  }
  const Values scales = ScalesOf(rows);
  // A whole's bytes per second have no bar that could be compared.
  const Row whole = WholeRow(model, view);
  Values own = scales;
  for (size_t i = 0; i < kColumns; ++i) {
    if (!InfoOf(ColumnAt(i)).ratio) own[i] = 0;
  }
  DrawRow(whole, shape, own, box, box.y + 1, screen);
  if (place == 0) screen.Select(box.y + 1);
  for (size_t i = 0; i < rows.size(); ++i) {
    DrawRow(rows[i], shape, scales, box, box.y + 2 + i, screen);
    if (place == view.top + i + 1) screen.Select(box.y + 2 + i);
  }
  if (rows.empty()) screen.Put(box.x, box.y + 2, WhyEmpty(model, view), Style::kDim);
}

}  // namespace sonde::cli::top
