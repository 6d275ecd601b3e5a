// The description of every endpoint as OpenAPI 3.1, served at /api/openapi.json: made from the
// routes' own descriptions (web/route/route_doc.h).
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "web/route/route.h"

namespace sonde::web {

std::string OpenApiJson();

std::span<const Route> OpenApiRoutes();

// A shape of web/route/route_doc.h as a JSON schema.
std::string SchemaOf(std::string_view shape);

// Named schemas, to which "#NAME" refers.
struct NamedSchema {
  std::string_view name;
  std::string_view json;
};
std::span<const NamedSchema> NamedSchemas();

}  // namespace sonde::web
