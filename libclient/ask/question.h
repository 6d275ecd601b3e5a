// A question of a program as the body of a request, see kQuery in layout.h.
//
// Thread safety: a function without state.
#pragma once

#include "libclient/ask/bytes.h"
#include "libclient/sonde_query.h"

namespace sonde::client {

// The body of kQuery and kSubscribe. "The last seconds" end now.
void EncodeQuestion(const sonde_question_t& question, Bytes& out);

}  // namespace sonde::client
