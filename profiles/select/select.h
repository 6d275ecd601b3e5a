// Finds what a selection asks for in a database: by the cards and the indexes.
//
// If a filter names something that an index knows, its entries are looked up there, as long as they
// are few; otherwise the cards of the time range are read one after the other, which takes a
// millisecond for a thousand. Both ways give the same result.
//
// Thread safety: functions without state.
#pragma once

#include <leveldb/db.h>

#include "core/status.h"
#include "profiles/select/selection.h"

namespace sonde {

class Damage;

// Of a database of finished steps. Where its indexes are damaged, profiles are looked for one by
// one, and `damage` hears of it.
Status SelectFrom(leveldb::DB& db, const Selection& selection, SelectedList& list, Damage& damage);
// The same without the indexes.
void SelectOneByOne(leveldb::DB& db, const Selection& selection, SelectedList& list);

}  // namespace sonde
