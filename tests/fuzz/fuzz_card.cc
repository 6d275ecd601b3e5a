// Cards in the archive's index, changes of tags as they come over its socket, and totals.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profiles/model/summary.h"
#include "profiles/records/card.h"
#include "profiles/records/index.h"
#include "profiles/records/tags.h"
#include "profiles/select/select.h"

namespace {

void Use(std::string_view bytes) {
  using namespace sonde;
  Card card;
  if (!DecodeCard(bytes, card).ok()) return;
  if (bytes.size() > kMaxCard || card.tags.size() > kMaxUserTags) std::abort();
  for (const auto& [name, value] : card.tags) {
    // Texts lie within what was decoded.
    if (!value.empty() && (value.data() < bytes.data() ||
                           value.data() + value.size() > bytes.data() + bytes.size())) {
      std::abort();
    }
    if (CardText(name, kMaxUserTagName).size() > kMaxUserTagName) std::abort();
  }
  Selection selection;
  selection.command = "x";
  selection.tags.emplace_back("keep", std::nullopt);
  (void)Matches(card, selection);
  for (int sort = 0; sort <= static_cast<int>(SortBy::kTasks); ++sort) {
    (void)SortValue(card, 0, static_cast<SortBy>(sort), 0);
  }
  (void)SummaryOfCard(card, 0, 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Use(text);
  if (const auto change = TagChangeFromText(text); change.ok()) {
    const auto back = TagChangeFromText(TagChangeToText(*change));
    if (!back.ok() || back->set != change->set || back->remove != change->remove) std::abort();
  }
  if (const auto totals = TotalsFromBytes(text); totals.ok()) {
    if (*TotalsFromBytes(TotalsToBytes(*totals)) != *totals) std::abort();
  }
  return 0;
}
