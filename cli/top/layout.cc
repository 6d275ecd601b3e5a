#include "cli/top/layout.h"

#include <fmt/core.h>

#include <algorithm>

#include "profiles/model/text.h"

namespace sonde::cli::top {
namespace {

constexpr size_t kLeastPlot = 6;
constexpr size_t kLeastRows = 3;

struct Places {
  std::vector<Parts> head;
  size_t table = 0;  // its first line
  size_t rows = 0;   // of the table, without titles and the whole
  size_t plot = 0;   // its height
};

Parts WhereLine(const Model& model, const View& view) {
  Parts parts = {{model.id(), Style::kDim}, {" > ", Style::kDim}, {view.host, Style::kBold}};
  if (const Node* node = model.Find(view.host)) {
    parts.push_back({fmt::format(": {} task{}", node->tasks, node->tasks == 1 ? "" : "s")});
  }
  if (view.level == Level::kCores) {
    parts.push_back({" > ", Style::kDim});
    parts.push_back({"rank " + view.rank, Style::kBold});
    parts.push_back({": cores"});
    if (model.job().level < 4) {
      parts.push_back({" (how busy they are: --telemetry-level=4)", Style::kDim});
    }
  }
  return parts;
}

Places PlacesOf(const Model& model, const View& view, const Look& look) {
  Places places;
  places.head = HeadLines(model, view, look);
  if (view.panel != Panel::kNone) places.head.resize(1);
  if (view.level != Level::kNodes) places.head.push_back(WhereLine(model, view));
  // What is looked at comes before what is said of it.
  const size_t most = look.height / 2;
  if (look.keys && places.head.size() > most) places.head.resize(most);
  places.table = places.head.size();
  const size_t foot = look.keys ? 1 : 0;
  const size_t left = look.height - std::min(look.height, places.table + 2 + foot);
  if (view.plot && left >= kLeastPlot + kLeastRows) {
    places.plot = std::max(kLeastPlot, std::min(left - kLeastRows, left * 3 / 5));
  }
  places.rows = left - places.plot;
  return places;
}

Parts KeyLine(const Model& model, const View& view, size_t width) {
  if (view.typing) {
    return {
        {"only nodes with: "}, {view.filter + "_", Style::kBold}, {"   Enter: keep   Esc: all"}};
  }
  const size_t columns = model.Shown(view).size();
  std::vector<std::pair<std::string, std::string>> keys = {{fmt::format("0-{}", columns), "sort"}};
  if (view.level == Level::kNodes) keys.emplace_back("Enter", "ranks");
  if (view.level == Level::kRanks) keys.emplace_back("Enter", "cores");
  if (view.level != Level::kNodes) keys.emplace_back("Esc", "back");
  keys.emplace_back("g", "plot");
  if (view.level == Level::kNodes) keys.emplace_back("/", "find");
  keys.emplace_back("a", "alarms");
  keys.emplace_back("r", "reverse");
  Parts line;
  size_t used = LettersOf("? help  q quit");
  for (const auto& [key, what] : keys) {
    const size_t letters = LettersOf(key) + 1 + LettersOf(what) + 2;
    if (used + letters > width) continue;
    used += letters;
    line.push_back({key, Style::kBold});
    line.push_back({" " + what + "  "});
  }
  line.insert(line.end(), {{"?", Style::kBold}, {" help  "}, {"q", Style::kBold}, {" quit"}});
  std::string more;
  if (!view.filter.empty() && used + LettersOf(view.filter) + 5 <= width) {
    more = fmt::format("  only {}", view.filter);
  }
  line.push_back({more, Style::kWarn});
  return line;
}

void DrawPanel(const Model& model, const View& view, const Look& look, size_t first,
               Screen& screen) {
  const std::vector<Parts> lines =
      view.panel == Panel::kHelp ? HelpLines(model, look) : AlarmLines(model, look);
  const size_t room = look.height - std::min(look.height, first + 1);
  const size_t most = lines.size() - std::min(lines.size(), room);
  const size_t top = std::min(view.panel_top, most);
  for (size_t i = 0; i < room && top + i < lines.size(); ++i) {
    PutParts(screen, 0, first + i, lines[top + i]);
  }
  const std::string_view more =
      most > 0 ? "arrows scroll, any other key goes back" : "any key goes back";
  screen.Put(0, look.height - 1, more, Style::kDim);
}

Parts Keyed(std::string_view key, std::string_view what) {
  return {{fmt::format("  {:<12}", key), Style::kBold}, {std::string(what)}};
}

void AddWrapped(std::string_view first, std::string_view rest, std::string_view words, size_t width,
                Style style, std::vector<Parts>& lines) {
  std::string text = text::Wrapped(first, rest, words, width);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back({{text.substr(0, end), style}});
    text.erase(0, end == std::string::npos ? text.size() : end + 1);
  }
}

}  // namespace

std::vector<Parts> HelpLines(const Model& model, const Look& look) {
  std::vector<Parts> lines = {
      {{"Keys", Style::kBold}},
      Keyed("arrows", "move; PgUp, PgDn, Home and End as well"),
      Keyed("0-9", "sort by name (0) or by a column, the worst first; r reverses"),
      Keyed("Enter", "from a node to its ranks, from a rank to the cores"),
      Keyed("Esc", "back"),
      Keyed("/", "only nodes whose names contain a text"),
      Keyed("g, Tab", "the sorted column over time: of the row under the cursor"),
      Keyed("a", "alarms that are raised"),
      Keyed("q", "quit; the step goes on"),
      {},
      {{"Columns", Style::kBold}},
  };
  for (const Column column : model.columns()) {
    AddWrapped(fmt::format("  {:<12}", InfoOf(column).title), std::string(14, ' '),
               InfoOf(column).help, look.width, Style::kPlain, lines);
  }
  lines.emplace_back();
  AddWrapped("", "",
             "A '-' was not measured. Bars of shares are full at 100 %, those of bytes at the "
             "largest row in view. Colours: green is as it should be, yellow may be better, red is "
             "worth a look. A core is the kernel's number of a processor.",
             look.width, Style::kPlain, lines);
  return lines;
}

std::vector<Parts> AlarmLines(const Model& model, const Look& look) {
  std::vector<Parts> lines = {{{"Alarms that are raised", Style::kBold}}};
  for (const Alarm& alarm : model.alarms()) {
    std::string where = alarm.node.empty() ? "" : " on " + alarm.node;
    if (!alarm.rank.empty()) where = fmt::format(" of rank {}{}", alarm.rank, where);
    AddWrapped("  ", "    ",
               Printable(fmt::format("{} {} ({}){}: {}", TimeOfDay(alarm.since), alarm.name,
                                     alarm.severity, where, alarm.text)),
               look.width, Style::kBad, lines);
  }
  if (model.alarms().empty()) lines.push_back({{"  none"}});
  return lines;
}

void PutParts(Screen& screen, size_t x, size_t y, const Parts& parts) {
  for (const Part& part : parts) x = screen.Put(x, y, part.text, part.style);
}

size_t PageOf(const Model& model, const View& view, const Look& look) {
  return PlacesOf(model, view, look).rows;
}

size_t PlotPoints(const Look& look) { return look.width > 20 ? (look.width - 7) * 2 : 0; }

size_t FullHeight(const Model& model, const View& view, const Look& look) {
  Look tall = look;
  tall.height = 1000;  // the head is whole then
  const size_t rows = std::max<size_t>(model.Order(view).size(), 1);
  return std::max(PlacesOf(model, view, tall).table + 2 + rows, kLeastHeight);
}

Screen Draw(const Model& model, const View& view, const Look& look) {
  Screen screen(look.width, look.height, look.unicode);
  if (look.width < kLeastWidth || look.height < kLeastHeight) {
    screen.Put(0, 0, fmt::format("{} x {}: too small,", look.width, look.height));
    screen.Put(0, 1, fmt::format("needs {} x {}", kLeastWidth, kLeastHeight));
    return screen;
  }
  const Places places = PlacesOf(model, view, look);
  for (size_t i = 0; i < places.head.size(); ++i) PutParts(screen, 0, i, places.head[i]);
  if (view.panel != Panel::kNone) {
    DrawPanel(model, view, look, places.table, screen);
    return screen;
  }
  DrawTable(model, view, look, {0, places.table, look.width, places.rows + 2}, screen);
  if (places.plot > 0) {
    DrawPlot(model, {0, places.table + 2 + places.rows, look.width, places.plot}, screen);
  }
  if (look.keys) PutParts(screen, 0, look.height - 1, KeyLine(model, view, look.width));
  return screen;
}

}  // namespace sonde::cli::top
