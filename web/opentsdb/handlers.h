// The handlers of OpenTSDB's API, which is spread over the files of this folder.
//
// Thread safety: from any thread.
#pragma once

#include "profiles/json/writer.h"
#include "web/route/route.h"

namespace sonde::web {

// query.cc
Task<Response> GetQuery(const Context& context, const Request& request);
Task<Response> PostQuery(const Context& context, const Request& request);

// put.cc
void PostPut(const Context& context, const Request& request, Reply reply);

// notes.cc
Task<Response> GetAnnotation(const Context& context, const Request& request);
void PostAnnotation(const Context& context, const Request& request, Reply reply);
void PutAnnotation(const Context& context, const Request& request, Reply reply);
void DeleteAnnotation(const Context& context, const Request& request, Reply reply);
void PostAnnotations(const Context& context, const Request& request, Reply reply);
void PutAnnotations(const Context& context, const Request& request, Reply reply);
void DeleteAnnotations(const Context& context, const Request& request, Reply reply);
Task<Response> GetAnnotations(const Context& context, const Request& request);
void WriteNote(const Note& note, JsonWriter& json);

// For stores that take nothing over HTTP.
Response NothingIsPut();

}  // namespace sonde::web
