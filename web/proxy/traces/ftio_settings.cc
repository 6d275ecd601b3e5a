// /ftio/args, /ftio/logs, /ftio/port: what metric-proxy's page of FTIO shows and saves. Nothing is
// handed to another program here, so there are no logs and there is no port.
#include <optional>
#include <string>
#include <utility>

#include "profiles/json/writer.h"
#include "web/http/json_input.h"
#include "web/proxy/operation.h"
#include "web/proxy/traces/ftio_args.h"
#include "web/proxy/traces/routes.h"

namespace sonde::web {
namespace {

void GetArgs(const Context& context, const Request&, Reply reply) {
  const Result<FtioArgs> args = KeptFtioArgs(*context.ftio_args);
  if (!args.ok()) return reply(ErrorResponse(args.status()));
  Response response;
  JsonWriter json(response.body);
  WriteFtioArgs(*args, json);
  reply(std::move(response));
}

void SaveArgs(const Context& context, const Request& request, Reply reply) {
  const Result<FtioArgs> args = ReadFtioArgs(request.body);
  if (!args.ok()) return reply(ErrorResponse(args.status()));
  std::string text;
  JsonWriter json(text);
  WriteFtioArgs(*args, json);
  context.ftio_args->Keep(std::move(text));
  reply(Success("FTIO args updated"));
}

void GetLogs(const Context&, const Request&, Reply reply) {
  Response response;
  JsonWriter(response.body)
      .BeginArray()
      .Value("Sonde finds periods itself, by the method of FTIO; no FTIO server is asked.")
      .EndArray();
  reply(std::move(response));
}

// The page shows the operation as the port's number: there is none.
void GetPort(const Context&, const Request&, Reply reply) { reply(Success("")); }

void SavePort(const Context&, const Request& request, Reply reply) {
  const Result<std::string> port = WithObject<std::string>(
      request.body, [](const boost::json::object& object) -> Result<std::string> {
        std::optional<std::string> text;
        for (const auto& [name, value] : object) {
          if (View(name) != "port") return NoSuchField(View(name), "port");
          SONDE_RETURN_IF_ERROR(ReadText(value, "port", text.emplace()));
        }
        if (!text) return Status(Code::kInvalid, "No 'port' field in JSON");
        return *std::move(text);
      });
  if (!port.ok()) return reply(ErrorResponse(port.status()));
  if (port->empty()) return reply(Success("no FTIO server is asked"));
  reply(ErrorResponse({Code::kInvalid,
                       "port: Sonde finds periods itself and asks no FTIO server; FTIO can ask "
                       "Sonde: it reads /trace/json"}));
}

constexpr std::string_view kSuccess = "#Operation";
constexpr std::string_view kArgs =
    R"({"type":"object","required":["freq","ts","te","transformation","outlier","tol","no_psd",)"
    R"("n_freq","autocorrelation"],"properties":{"freq":{"const":-1},"ts":{"type":["number",)"
    R"("null"]},"te":{"type":["number","null"]},"transformation":{"const":"dft"},"outlier":)"
    R"({"const":"z-score"},"tol":{"type":"number"},"no_psd":{"type":"boolean"},"n_freq":)"
    R"({"type":"integer","minimum":0},"autocorrelation":{"const":true}}})";

constexpr Route kFtioSettingsRoutes[] = {
    {"/ftio/args",
     GetArgs,
     SaveArgs,
     {.about = "How periods are found where a request does not say it", .answer = kArgs},
     {.about = "Saves that, as long as this server runs",
      .answer = kSuccess,
      .body = R"({"type":"object"})",
      .example_body = R"({"tol": 0.8, "n_freq": 10, "no_psd": false})"},
     SaveArgs},
    {"/ftio/logs",
     GetLogs,
     nullptr,
     {.about = "Lines for metric-proxy's page of FTIO",
      .answer = R"({"type":"array","items":{"type":"string"}})"}},
    {"/ftio/port",
     GetPort,
     SavePort,
     {.about = "The port of the FTIO server: none, so that the operation is empty",
      .answer = kSuccess},
     {.about = "Takes an empty port only: no FTIO server is asked",
      .answer = kSuccess,
      .body = R"({"type":"object","required":["port"],"properties":{"port":{"type":"string"}}})",
      .example_body = R"({"port": ""})"},
     SavePort}};

}  // namespace

std::span<const Route> FtioSettingsRoutes() { return kFtioSettingsRoutes; }

}  // namespace sonde::web
