// The handlers of OpenTSDB's API, which is spread over the files opentsdb_*.cc.
//
// Thread safety: from any thread.
#pragma once

#include "profiles/json_writer.h"
#include "web/router.h"

namespace sonde::web {

// opentsdb_query.cc
void GetQuery(const Context& context, const Request& request, Reply reply);
void PostQuery(const Context& context, const Request& request, Reply reply);

// opentsdb_put.cc
void PostPut(const Context& context, const Request& request, Reply reply);

// opentsdb_notes.cc
void GetAnnotation(const Context& context, const Request& request, Reply reply);
void PostAnnotation(const Context& context, const Request& request, Reply reply);
void PutAnnotation(const Context& context, const Request& request, Reply reply);
void DeleteAnnotation(const Context& context, const Request& request, Reply reply);
void PostAnnotations(const Context& context, const Request& request, Reply reply);
void PutAnnotations(const Context& context, const Request& request, Reply reply);
void DeleteAnnotations(const Context& context, const Request& request, Reply reply);
void GetAnnotations(const Context& context, const Request& request, Reply reply);
void WriteNote(const Note& note, JsonWriter& json);

// For stores that take nothing over HTTP.
Response NothingIsPut();

}  // namespace sonde::web
