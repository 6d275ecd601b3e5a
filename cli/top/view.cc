#include "cli/top/view.h"

#include <algorithm>

#include "cli/top/model.h"

namespace sonde::cli::top {
namespace {

void MoveTo(size_t place, const Model& model, View& view) {
  const std::vector<uint32_t>& order = model.Order(view);
  place = std::min(place, order.size());
  view.cursor = place == 0 ? "" : RowName(model, view, order[place - 1]);
  ShowCursor(model, view);
}

void Move(const Key& key, const Model& model, View& view) {
  const size_t place = CursorPlace(model, view);
  const size_t page = std::max<size_t>(view.page, 1);
  using enum Key::Kind;
  switch (key.kind) {
    case kUp:
      return MoveTo(place - std::min<size_t>(place, 1), model, view);
    case kDown:
      return MoveTo(place + 1, model, view);
    case kPageUp:
      return MoveTo(place - std::min(place, page), model, view);
    case kPageDown:
      return MoveTo(place + page, model, view);
    case kHome:
      return MoveTo(0, model, view);
    case kEnd:
      return MoveTo(SIZE_MAX, model, view);
    default:
      return;
  }
}

void Enter(View& view) {
  if (view.cursor.empty() || view.level == Level::kCores) return;
  if (view.level == Level::kNodes) {
    view.host = view.cursor;
    view.level = Level::kRanks;
  } else {
    view.rank = view.cursor;
    view.level = Level::kCores;
  }
  view.cursor.clear();
  view.top = 0;
  if (!InfoOf(view.sort).of_tasks) view.sort = Column::kCpu;
}

void Leave(const Model& model, View& view) {
  if (view.plot) {
    view.plot = false;
  } else if (view.level == Level::kCores) {
    view.level = Level::kRanks;
    view.cursor = view.rank;
  } else if (view.level == Level::kRanks) {
    view.level = Level::kNodes;
    view.cursor = view.host;
  } else {
    view.filter.clear();
  }
  ShowCursor(model, view);
}

void Type(const Key& key, const Model& model, View& view) {
  constexpr size_t kMostLetters = 64;
  if (key.kind == Key::Kind::kLetter) {
    if (view.filter.size() < kMostLetters) view.filter += key.letter;
  } else if (key.kind == Key::Kind::kBack && key.backspace) {
    if (!view.filter.empty()) view.filter.pop_back();
  } else if (key.kind == Key::Kind::kBack) {
    view.filter.clear();
    view.typing = false;
  } else if (key.kind == Key::Kind::kEnter) {
    view.typing = false;
  } else {
    return Move(key, model, view);
  }
  view.top = 0;
  ShowCursor(model, view);
}

void Browse(const Key& key, View& view) {
  using enum Key::Kind;
  if (key.kind == kDown) {
    ++view.panel_top;
  } else if (key.kind == kUp) {
    view.panel_top -= std::min<size_t>(view.panel_top, 1);
  } else {
    view.panel = Panel::kNone;
  }
}

void SortBy(size_t number, const Model& model, View& view) {
  const std::vector<Column> columns = model.Shown(view);
  view.top = 0;
  if (number == 0) {
    view.by_name = true;
  } else if (number <= columns.size()) {
    view.by_name = false;
    view.sort = columns[number - 1];
  }
}

bool Letter(char letter, const Model& model, View& view) {
  switch (letter) {
    case 'q':
      return false;
    case '?':
    case 'h':
      view.panel = Panel::kHelp;
      view.panel_top = 0;
      return true;
    case 'a':
      view.panel = Panel::kAlarms;
      view.panel_top = 0;
      return true;
    case 'g':
      view.plot = !view.plot;
      break;
    case 'r':
      view.reversed = !view.reversed;
      view.top = 0;
      break;
    case '/':
      view.typing = view.level == Level::kNodes;
      return true;
    default:
      if (letter >= '0' && letter <= '9') SortBy(static_cast<size_t>(letter - '0'), model, view);
  }
  ShowCursor(model, view);
  return true;
}

}  // namespace

std::string RowName(const Model& model, const View& view, uint32_t row) {
  switch (view.level) {
    case Level::kNodes:
      return model.nodes()[row].host;
    case Level::kRanks:
      return std::to_string(model.ranks()[row].rank);
    case Level::kCores:
      return std::to_string(model.cores()[row].number);
  }
  return "";
}

size_t CursorPlace(const Model& model, const View& view) {
  if (view.cursor.empty()) return 0;
  const std::vector<uint32_t>& order = model.Order(view);
  const auto place = [&](const auto& is_it) -> size_t {
    const auto at = std::find_if(order.begin(), order.end(), is_it);
    return at == order.end() ? 0 : static_cast<size_t>(at - order.begin()) + 1;
  };
  if (view.level != Level::kNodes) {
    return place([&](uint32_t row) { return RowName(model, view, row) == view.cursor; });
  }
  const Node* node = model.Find(view.cursor);
  return place([&](uint32_t row) { return &model.nodes()[row] == node; });
}

void ShowCursor(const Model& model, View& view) {
  const size_t place = CursorPlace(model, view);
  const size_t rows = model.Order(view).size();
  const size_t page = std::max<size_t>(view.page, 1);
  if (place == 0) {
    view.cursor.clear();
    view.top = 0;
  } else if (place - 1 < view.top) {
    view.top = place - 1;
  } else if (place > view.top + page) {
    view.top = place - page;
  }
  if (rows <= page) {
    view.top = 0;
  } else {
    view.top = std::min(view.top, rows - page);
  }
}

std::string PlottedHost(const View& view) {
  return view.level == Level::kNodes ? view.cursor : view.host;
}

std::string PlottedRank(const View& view) {
  if (view.level == Level::kCores) return view.rank;
  return view.level == Level::kRanks ? view.cursor : "";
}

bool Press(const Key& key, const Model& model, View& view) {
  if (view.typing) {
    Type(key, model, view);
    return true;
  }
  if (view.panel != Panel::kNone) {
    Browse(key, view);
    return true;
  }
  using enum Key::Kind;
  switch (key.kind) {
    case kLetter:
      return Letter(key.letter, model, view);
    case kEnter:
      Enter(view);
      return true;
    case kBack:
      Leave(model, view);
      return true;
    case kTab:
      return Letter('g', model, view);
    default:
      Move(key, model, view);
      return true;
  }
}

}  // namespace sonde::cli::top
