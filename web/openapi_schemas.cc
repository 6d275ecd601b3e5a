// The named schemas of /api/openapi.json. Sonde's and metric-proxy's objects are closed: an
// undescribed member fails the test that compares real answers with the schemas.
#include "web/openapi.h"

namespace sonde::web {
namespace {

constexpr NamedSchema kSchemas[] = {
    {"Error", R"({"type":"object","required":["error"],"additionalProperties":false,
"properties":{"operation":{"type":"string","description":"where metric-proxy has it: the message"},
"success":{"const":false},"error":{"type":"object","required":["code","message"],"additionalProperties":false,
"properties":{"code":{"type":"integer","description":"the HTTP status"},
"message":{"type":"string"},"details":{"type":"string"},
"count":{"type":"integer","description":"how many points or series the answer would have"},
"limit":{"type":"integer"}}}}})"},

    {"Description", R"({"type":"object","additionalProperties":false,
"required":["jobid","command","size","nodelist","partition","cluster","run_dir","start_time",
"end_time"],"properties":{"jobid":{"type":"string","examples":["4711.0"]},
"command":{"type":"string"},"size":{"type":"integer","description":"tasks"},
"nodelist":{"type":"string"},"partition":{"type":"string"},"cluster":{"type":"string"},
"run_dir":{"type":"string"},"start_time":{"type":"integer","description":"s since 1970"},
"end_time":{"type":"integer","description":"0 while it runs"},"name":{"type":"string"},
"user":{"type":"string"},"state":{"type":"string",
"enum":["running","completed","failed","out_of_memory","cancelled","lost","unknown"]},
"nodes":{"type":"integer"},"level":{"type":"integer"},
"period":{"type":"number","description":"s"},"samples_expected":{"type":"integer"},
"samples":{"type":"integer"},"samples_skipped":{"type":"integer"},
"figures":{"type":"array","items":{"type":"object","required":["name","value","unit"],
"properties":{"name":{"type":"string"},"value":{"type":["number","null"]},
"unit":{"type":"string"}}}}}})"},

    {"Counter", R"({"type":"object","required":["name","doc","ctype"],"additionalProperties":false,
"properties":{"name":{"type":"string"},"doc":{"type":"string"},"ctype":{"oneOf":[
{"type":"object","required":["Counter"],"additionalProperties":false,"properties":{"Counter":
{"type":"object","required":["value"],"properties":{"value":{"type":["number","null"]}}}}},
{"type":"object","required":["Gauge"],"additionalProperties":false,"properties":{"Gauge":
{"type":"object","required":["min","max","hits","total"],"properties":{
"min":{"type":["number","null"]},"max":{"type":["number","null"]},
"hits":{"type":["number","null"]},"total":{"type":["number","null"]}}}}}]}}})"},

    {"Snapshot", R"({"type":"object","required":["desc","counters"],"additionalProperties":false,
"properties":{"desc":{"$ref":"#/components/schemas/Description"},
"counters":{"type":"array","items":{"$ref":"#/components/schemas/Counter"}}}})"},

    {"Tags", R"({"type":"object","required":["job","tags"],"additionalProperties":false,
"properties":{"job":{"type":"string"},
"tags":{"type":"object","additionalProperties":{"type":"string"}}}})"},

    {"NewTags", R"({"type":"object","required":["tags"],"properties":{
"tags":{"type":"object","maxProperties":32,"additionalProperties":{"type":"string","maxLength":256}}}})"},

    {"Steps", R"({"type":"object","required":["job","steps"],"additionalProperties":false,
"properties":{"job":{"type":"string"},"steps":{"type":"array","items":{"type":"object",
"additionalProperties":false,"required":["key","job","step","name","state","start","end","nodes",
"tasks","tags","summary"],"properties":{"key":{"type":"string"},"job":{"type":"string"},
"step":{"type":"string"},"name":{"type":"string"},"state":{"type":"string"},
"start":{"type":"integer","description":"ns since 1970"},
"end":{"type":"integer","description":"0 while it runs"},"nodes":{"type":"integer"},
"tasks":{"type":"integer"},"tags":{"type":"object","additionalProperties":{"type":"string"}},
"summary":{"type":"object"}}}}}})"},

    {"Difference", R"({"type":"object","required":["groups","noise","noise_runs","rows","axis",
"series"],"additionalProperties":false,"properties":{
"groups":{"type":"array","items":{"type":"object","required":["label","runs"],
"properties":{"label":{"type":"string"},"runs":{"type":"array","items":{"type":"object",
"required":["key","job"]}}}}},"noise":{"type":"string"},"noise_runs":{"type":"integer"},
"rows":{"type":"array","items":{"type":"object","required":["section","name","unit","beyond",
"noise_from","groups","changes"]}},"axis":{"type":"object","required":["align","from","to","bins",
"bin_seconds"]},"series":{"type":"array","items":{"type":"object","required":["name","unit",
"per_second","groups"]}}}})"},

    {"Profile", R"({"type":"object","required":["job","footprint","cost","moments"],
"additionalProperties":false,"properties":{
"job":{"type":"object","required":["job","step","user","command","nodes","state"],
"description":"times in ns since 1970","properties":{"job":{"type":"string"},
"step":{"type":"string"},"user":{"type":"string"},"command":{"type":"string"},
"nodes":{"type":"array","items":{"type":"object"}},"state":{"type":"string"},
"presence":{"type":"array","description":"rows that have samples of the same nodes",
"items":{"type":"object","required":["first","nodes"],"properties":{"first":{"type":"integer"},
"nodes":{"type":"integer"},"joined":{"type":"integer"},"left":{"type":"integer"},
"back_from":{"type":"integer"}}}}}},
"footprint":{"type":"array","items":{"type":"object","required":["metric","tags","unit","help",
"type","level","reduction","ticks","last","mean","min","max"],"properties":{
"metric":{"type":"string"},"tags":{"type":"object","additionalProperties":{"type":"string"}},
"unit":{"type":"string"},"help":{"type":"string"},"type":{"type":"string"},
"level":{"type":"integer"},"reduction":{"type":"string"},"ticks":{"type":"integer"},
"last":{"type":["number","null"]},"mean":{"type":["number","null"]},
"min":{"type":["number","null"]},"max":{"type":["number","null"]}}}},
"cost":{"type":"object","additionalProperties":{"type":["number","null"]}},
"moments":{"type":"object"}}})"},

    {"Series", R"({"type":"object","additionalProperties":false,
"required":["job","metric","unit","type","rate","reduction","start","end","interval","hosts",
"series"],"properties":{"job":{"type":"string"},"metric":{"type":"string"},
"unit":{"type":"string"},"type":{"type":"string"},"rate":{"type":"boolean"},
"reduction":{"type":"string"},"help":{"type":"string"},
"start":{"type":"number","description":"s since 1970"},"end":{"type":"number"},
"interval":{"type":"number","description":"s"},"nodes_answered":{"type":"integer"},
"nodes_expected":{"type":"integer"},
"rows_only":{"type":"string",
"description":"why rows alone answer, in some of which nodes are missing"},
"nodes":{"type":"array","description":"of how many nodes points are, where it changes: time, nodes",
"items":{"$ref":"#/components/schemas/Pair"}},"hosts":{"type":"array","items":{"type":"string"}},
"series":{"type":"array","items":{"$ref":"#/components/schemas/Line"}}}})"},

    {"Line", R"({"type":"object","required":["tags","time","value"],
"description":"columns: as many entries in each as there are points","properties":{
"tags":{"type":"object","additionalProperties":{"type":"string"}},
"time":{"type":"array","items":{"type":"number"}}},
"additionalProperties":{"type":"array","items":{"type":["number","null"]}}})"},

    {"Told", R"({"type":"object","required":["operation","success"],"additionalProperties":false,
"properties":{"operation":{"type":"string"},"success":{"type":"boolean"}}})"},

    {"Pair", R"({"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2})"},

    {"Trace", R"({"type":"object","required":["desc","size","lastwrite"],
"additionalProperties":false,"properties":{"desc":{"$ref":"#/components/schemas/Description"},
"size":{"type":"integer","description":"bytes"},
"lastwrite":{"type":"integer","description":"s since 1970"}}})"},

    {"TraceValue", R"({"oneOf":[{"type":"object","required":["Counter"],
"additionalProperties":false,"properties":{"Counter":{"type":"object","required":["ts","value"],
"properties":{"ts":{"type":"number"},"value":{"type":"number"}}}}},
{"type":"object","required":["Gauge"],"additionalProperties":false,"properties":{"Gauge":
{"type":"object","required":["min","max","hits","total"],"properties":{
"min":{"type":["number","null"]},"max":{"type":["number","null"]},"hits":{"const":1},
"total":{"type":["number","null"]}}}}}]})"},

    {"Counters", R"({"type":"object","required":["job","paused"],"additionalProperties":false,
"properties":{"job":{"type":"string"},"paused":{"type":"boolean"}}})"},

    {"Exporter", R"({"type":"object","required":["job","target_url","ttype","period",
"last_scrape","up"],"additionalProperties":false,"properties":{"job":{"type":"string"},
"period":{"type":"number","description":"s"},
"last_scrape":{"type":"integer","description":"s since 1970"},
"target_url":{"type":"string"},"ttype":{"type":"string"},
"up":{"type":["number","null"],"description":"1 if the last scrape worked"}}})"},

    {"Alarm", R"({"type":"object","additionalProperties":false,
"required":["name","metric","operator","current","active","pretty"],"properties":{
"name":{"type":"string"},"metric":{"type":"string"},
"operator":{"type":"object","minProperties":1,"maxProperties":1,
"additionalProperties":{"type":["number","null"]}},"current":{"type":["number","null"]},
"active":{"type":"boolean"},"pretty":{"type":"string"},"severity":{"type":"string"},
"rule":{"type":"string"},"text":{"type":"string"},
"since":{"type":"integer","description":"ns since 1970"},"value":{"type":"string"},
"node":{"type":"string"},"rank":{"type":"integer"}}})"},

    {"NewAlarm", R"({"type":"object","required":["name"],"properties":{"name":{"type":"string"},
"target":{"type":"string"},"rule":{"type":"string"},"metric":{"type":"string"},
"operation":{"type":"string"},"value":{"type":["number","string"]}}})"},

    {"OldAlarm", R"({"type":"object","required":["name"],"properties":{"name":{"type":"string"},
"target":{"type":"string"},"targetjob":{"type":"string"}}})"},

    {"Done", R"({"type":"object","required":["operation","success","job","name"],
"additionalProperties":false,"properties":{"operation":{"type":"string","enum":["add","del"]},
"success":{"type":"boolean"},"job":{"type":"string"},"name":{"type":"string"}}})"},

    {"Query", R"({"type":"object","required":["start","queries"],"properties":{
"start":{"type":["string","number"]},"end":{"type":["string","number"]},
"timezone":{"type":"string"},"useCalendar":{"type":"boolean"},
"msResolution":{"type":"boolean"},"showQuery":{"type":"boolean"},
"noAnnotations":{"type":"boolean"},"globalAnnotations":{"type":"boolean"},
"queries":{"type":"array","minItems":1,"maxItems":64,"items":{"type":"object",
"required":["metric","aggregator"],"properties":{"metric":{"type":"string"},
"aggregator":{"type":"string"},"downsample":{"type":"string"},"rate":{"type":"boolean"},
"rateOptions":{"type":"object"},"explicitTags":{"type":"boolean"},
"tags":{"type":"object","additionalProperties":{"type":"string"}},
"filters":{"type":"array","items":{"type":"object","required":["type","tagk","filter"],
"properties":{"type":{"type":"string"},"tagk":{"type":"string"},"filter":{"type":"string"},
"groupBy":{"type":"boolean"}}}}}}}}})"},

    {"QueryResult", R"({"type":"object","required":["metric","tags","aggregateTags","dps"],
"additionalProperties":false,"properties":{"metric":{"type":"string"},
"tags":{"type":"object","additionalProperties":{"type":"string"}},
"aggregateTags":{"type":"array","items":{"type":"string"}},"query":{"type":"object"},
"annotations":{"type":"array","items":{"$ref":"#/components/schemas/Annotation"}},
"globalAnnotations":{"type":"array","items":{"$ref":"#/components/schemas/Annotation"}},
"dps":{"oneOf":[{"type":"object","additionalProperties":{"type":["number","string","null"]}},
{"type":"array","items":{"type":"array","minItems":2,"maxItems":2,
"items":{"type":["number","string","null"]}}}]}}})"},

    {"Annotation", R"({"type":"object","required":["startTime"],"additionalProperties":false,
"properties":{"tsuid":{"type":"string"},"startTime":{"type":"integer","description":"s"},
"endTime":{"type":"integer"},"description":{"type":"string"},"notes":{"type":"string"},
"custom":{"type":"object","additionalProperties":{"type":"string"}}}})"},

    {"PutPoint", R"({"type":"object","required":["metric","timestamp","value","tags"],"properties":{
"metric":{"type":"string"},"timestamp":{"type":["integer","string"]},
"value":{"type":["number","string"]},
"tags":{"type":"object","additionalProperties":{"type":"string"}}}})"},

    {"PutSummary", R"({"type":"object","required":["success","failed"],
"additionalProperties":false,"properties":{"success":{"type":"integer"},
"failed":{"type":"integer"},"errors":{"type":"array","items":{"type":"object",
"required":["datapoint","error"],"properties":{"datapoint":{"type":"object"},
"error":{"type":"string"}}}}}})"},

    {"Lookup", R"({"type":"object","required":["type","metric","tags","limit","results",
"totalResults"],"properties":{"type":{"type":"string"},"metric":{"type":"string"},
"tags":{"type":"array"},"limit":{"type":"integer"},"totalResults":{"type":"integer"},
"results":{"type":"array","items":{"type":"object","required":["metric","tags"],"properties":{
"tsuid":{"type":"string"},"metric":{"type":"string"},
"tags":{"type":"object","additionalProperties":{"type":"string"}}}}}}})"},
};

}  // namespace

std::span<const NamedSchema> NamedSchemas() { return kSchemas; }

}  // namespace sonde::web
