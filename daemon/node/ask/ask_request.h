// What a process of the node asks, taken apart: bodies of libclient/ask/layout.h to the types of
// series/query/query.h. Everything here comes from outside and is checked.
//
// Thread safety: functions without state.
#pragma once

#include <string_view>

#include "core/status.h"
#include "libclient/ask/layout.h"
#include "series/query/query.h"

namespace sonde::node {

// The first packet's body. kUnsupported for another version, kCorrupt for no hello.
Status CheckAskHello(std::string_view body);

// kQuery. A message that a user may cause names what was expected (kInvalid), others say only that
// the bytes are damaged (kCorrupt).
Result<QuerySpec> DecodeAskQuery(std::string_view body);
// kSubscribe: without downsampling and with a range that means nothing.
Result<QuerySpec> DecodeAskSubscription(std::string_view body);
// kAlarm: how long the texts are; the head judges what they say.
Status CheckAskAlarm(std::string_view body);
// kList: the metric, "" for all.
Result<std::string> DecodeAskList(std::string_view body);

}  // namespace sonde::node
