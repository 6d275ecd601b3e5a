// /api/v1/damage: what of the archive could not be read, while the rest is shown.
#include "profiles/json/writer.h"
#include "web/api/routes.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

Task<Response> GetDamage(const Context& context, const Request& /*request*/) {
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key("damage").BeginArray();
  for (const std::string& what : context.history->PassedOver()) json.Value(what);
  json.EndArray().EndObject();
  co_return response;
}

constexpr Route kDamageRoutes[] = {
    {"/api/v1/damage",
     Waits<GetDamage>,
     nullptr,
     {.about = "What could not be read of the archive since the server began or a repair, while "
               "the rest is shown: each in words, none at a head",
      .answer = R"({"type":"object","required":["damage"],"additionalProperties":false,)"
                R"("properties":{"damage":{"type":"array","items":{"type":"string"}}}})",
      .example = ""}}};

}  // namespace

std::span<const Route> DamageRoutes() { return kDamageRoutes; }

}  // namespace sonde::web
