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
"enum":["running","completed","failed","out_of_memory","cancelled","timeout","preempted","node_fail",
"lost","unknown"]},
"nodes":{"type":"integer"},"level":{"type":"integer"},
"period":{"type":"number","description":"s"},"samples_expected":{"type":"integer"},
"samples":{"type":"integer"},"samples_skipped":{"type":"integer"},
"figures":{"type":"array","items":{"type":"object","required":["name","value","unit"],
"properties":{"name":{"type":"string"},"value":{"type":["number","null"]},
"unit":{"type":"string"}}}}}})"},

    {"Counter", R"({"type":"object","required":["name","doc","ctype"],"additionalProperties":false,
"properties":{"name":{"type":"string"},"doc":{"type":"string"},"ctype":{"oneOf":[
{"type":"object","required":["Counter"],"additionalProperties":false,"properties":{"Counter":
{"type":"object","required":["ts","value"],"properties":{
"ts":{"type":"integer","description":"us since 1970"},"value":{"type":"number"}}}}},
{"type":"object","required":["Gauge"],"additionalProperties":false,"properties":{"Gauge":
{"type":"object","required":["min","max","hits","total"],"properties":{
"min":{"type":"number"},"max":{"type":"number"},
"hits":{"type":"number"},"total":{"type":"number"}}}}}]}}})"},

    {"Snapshot", R"({"type":"object","required":["desc","counters"],"additionalProperties":false,
"properties":{"desc":{"$ref":"#/components/schemas/Description"},
"counters":{"type":"array","items":{"$ref":"#/components/schemas/Counter"}}}})"},

    {"Tags", R"({"type":"object","required":["job","tags"],"additionalProperties":false,
"properties":{"job":{"type":"string"},
"tags":{"type":"object","additionalProperties":{"type":"string"}}}})"},

    {"NewTags", R"({"type":"object","required":["tags"],"properties":{
"tags":{"type":"object","maxProperties":32,"additionalProperties":{"type":"string","maxLength":256}}}})"},

    {"Steps", R"({"type":"object","required":["steps"],"additionalProperties":false,
"properties":{"job":{"type":"string","description":"if it was asked for; else the last five"},
"found":{"type":"integer","description":"steps that pass the filters"},
"offset":{"type":"integer"},"limit":{"type":"integer"},
"now":{"type":"integer","description":"the server's time, ns since 1970"},
"one_step":{"type":"boolean","description":"a head: there is this step and will be no other"},
"steps":{"type":"array","items":{"type":"object",
"additionalProperties":false,"required":["key","job","step","name","title","command","user",
"account","partition","level","state","start","end","nodes","tasks","coverage","figure","tags",
"summary"],"properties":{"key":{"type":"string"},"job":{"type":"string"},
"step":{"type":"string"},"name":{"type":"string","description":"the job's"},
"title":{"type":"string","description":"what the step is called: its script, if nobody named it"},
"command":{"type":"string","description":"its first 512 bytes"},"user":{"type":"string"},
"account":{"type":"string"},"partition":{"type":"string"},"level":{"type":"integer"},
"state":{"type":"string"},"start":{"type":"integer","description":"ns since 1970"},
"end":{"type":"integer","description":"0 while it runs"},"nodes":{"type":"integer"},
"tasks":{"type":"integer"},"coverage":{"type":"object","additionalProperties":false,
"required":["expected","got"],"properties":{"expected":{"type":"integer"},
"got":{"type":"integer"}}},"figure":{"type":["object","null"],"additionalProperties":false,
"description":"the first figure of merit","required":["name","unit","value"],
"properties":{"name":{"type":"string"},"unit":{"type":"string"},
"value":{"type":["number","null"]}}},
"tags":{"type":"object","additionalProperties":{"type":"string"}},
"summary":{"type":"object"}}}}}})"},

    {"Difference", R"({"type":"object","required":["groups","noise","noise_runs","rows","axis",
"series"],"additionalProperties":false,"properties":{
"groups":{"type":"array","items":{"type":"object","required":["label","runs"],
"properties":{"label":{"type":"string"},"runs":{"type":"array","items":{"type":"object",
"required":["key","title","job"]}}}}},"noise":{"type":"string"},"noise_runs":{"type":"integer"},
"rows":{"type":"array","description":"what matters most first","items":{"type":"object",
"required":["section","name","unit","beyond","weight","standing","noise_from","groups","changes"],
"properties":{"weight":{"type":["number","null"],
"description":"the share of the step's time, memory or I/O that differs; null: not known"},
"standing":{"enum":["weighty","unweighed","slight","same","pseudo"]}}}},
"axis":{"type":"object","required":["align","from","to","bins",
"bin_seconds"]},"series":{"type":"array","items":{"type":"object","required":["name","unit",
"per_second","groups"]}}}})"},

    {"Runs", R"({"type":"object","required":["runs","running","rows"],"additionalProperties":false,
"properties":{"runs":{"type":"array","items":{"type":"object","additionalProperties":false,
"required":["key","job","step","title","state","level","nodes","tasks","start","end"],"properties":{
"key":{"type":"string"},"job":{"type":"string"},"step":{"type":"string"},
"title":{"type":"string"},"state":{"type":"string"},"level":{"type":"integer"},
"nodes":{"type":"integer"},"tasks":{"type":"integer"},
"start":{"type":"integer","description":"ns since 1970"},"end":{"type":"integer"}}}},
"running":{"type":"integer","description":"steps that pass the filters and run: not compared"},
"rows":{"type":"array","description":"what matters most first","items":{"type":"object",
"additionalProperties":false,"required":["section","name","unit","metric","count","min","p10",
"median","p90","max","weight","standing","apart"],"properties":{"section":{"type":"string"},
"name":{"type":"string"},"unit":{"type":"string"},"metric":{"type":"string"},
"count":{"type":"integer","description":"runs that have the number"},
"min":{"type":["number","null"]},"p10":{"type":["number","null"]},
"median":{"type":["number","null"]},"p90":{"type":["number","null"]},
"max":{"type":["number","null"]},"weight":{"type":["number","null"],
"description":"the share of the step's time, memory or I/O that differs; null: not known"},
"standing":{"enum":["weighty","unweighed","slight","same","pseudo"]},
"apart":{"type":"array","description":"runs that stand out, the furthest first",
"items":{"type":"integer"}},"runs":{"type":"array",
"description":"of which runs the values are; absent: of all","items":{"type":"integer"}},
"values":{"type":"array","description":"where the runs differ",
"items":{"type":["number","null"]}}}}}}})"},

    {"Models", R"({"type":"object","required":["parameters","runs","notes","models"],
"additionalProperties":false,"properties":{
"parameters":{"type":"array","items":{"type":"string"}},
"runs":{"type":"array","items":{"type":"object","required":["job","step","place"]}},
"notes":{"type":"array","items":{"type":"string"}},
"models":{"type":"array","description":"what grows most first","items":{"type":"object",
"required":["metric","section","unit","model","constant","terms","growth","chance","smape",
"adjusted_r2","noise","runs","left_out","warnings","values"],"properties":{
"values":{"type":"array","description":"of the runs; null: the run has none",
"items":{"type":["number","null"]}},
"curve":{"type":"array","description":"size, value, and the band of 95 % of runs",
"items":{"type":"array","items":{"type":["number","null"]}}}}}}}})"},

    {"RunBands", R"({"type":"object","additionalProperties":false,
"required":["axis","end","bins","runs","left_out","series"],"properties":{
"axis":{"enum":["time","share"]},"end":{"type":"number","description":"of the axis: s, or 1"},
"bins":{"type":"integer"},"runs":{"type":"integer"},
"left_out":{"type":"integer","description":"series beyond the first 64"},
"series":{"type":"array","items":{"type":"object","required":["name","metric","unit","per_second",
"count","min","p10","median","p90","max"],"properties":{"name":{"type":"string"},
"metric":{"type":"string"},"unit":{"type":"string"},"per_second":{"type":"boolean"}},
"additionalProperties":{"type":"array","description":"an entry for each bin; count: runs in it",
"items":{"type":["number","null"]}}}}}})"},

    {"Insight", R"({"type":"object","required":["step"],"properties":{"step":{"type":"string"},
"hints":{"type":"array","items":{"type":"object","required":["name","kind","worth","says","why",
"change"]}}}})"},

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
"items":{"$ref":"#/components/schemas/Pair"}},"hosts":{"type":"array",
"description":"those that min_host and max_host name","items":{"type":"string"}},
"series":{"type":"array","items":{"$ref":"#/components/schemas/Line"}}}})"},

    {"Heatmap", R"({"type":"object","additionalProperties":false,"required":["job","metric","title",
"help","unit","type","rate","reduction","by","start","end","interval","resolution","columns","all",
"first","names","rows","mean","min","max","nodes_answered","nodes_expected"],"properties":{
"job":{"type":"string"},"metric":{"type":"string"},"title":{"type":"string"},
"help":{"type":"string"},"unit":{"type":"string"},"type":{"type":"string"},
"rate":{"type":"boolean"},"reduction":{"type":"string"},"by":{"type":"string","description":"host, task or a tag of the metric"},
"host":{"type":"string","description":"the node, where by is a tag of the metric"},
"start":{"type":"number","description":"s since 1970"},"end":{"type":"number"},
"interval":{"type":"number","description":"s of a column"},
"resolution":{"type":"number","description":"s: of the means and rates that tiles are made of"},
"columns":{"type":"integer"},"all":{"type":"integer","description":"nodes or tasks of the step, or values of the tag"},
"first":{"type":"integer","description":"the first one that is here"},
"names":{"type":"array","description":"hosts, ranks, or values of the tag","items":{"type":"string"}},
"task_hosts":{"type":"array","items":{"type":"string"}},
"rows":{"type":"array","description":"the first of its names, and how many",
"items":{"$ref":"#/components/schemas/Pair"}},
"mean":{"$ref":"#/components/schemas/Tiles"},"min":{"$ref":"#/components/schemas/Tiles"},
"max":{"$ref":"#/components/schemas/Tiles"},"members":{"$ref":"#/components/schemas/Tiles"},
"min_at":{"$ref":"#/components/schemas/Tiles"},"max_at":{"$ref":"#/components/schemas/Tiles"},
"rows_only":{"type":"string"},
"nodes_answered":{"type":"integer"},"nodes_expected":{"type":"integer"}}})"},

    {"Tiles", R"({"type":"array","description":"a list for each row, null: nothing was measured",
"items":{"type":"array","items":{"type":["number","null"]}}})"},

    {"Tree", R"({"type":"object","additionalProperties":false,
"required":["job","running","head","now","period","newest_tick","expected","registered","nodes"],"properties":{
"job":{"type":"string"},
"running":{"type":"boolean","description":"false: it has ended, and has no links any more"},"head":{"type":"string","description":"the host of the head"},
"now":{"type":"integer","description":"by the step's clock, ns since 1970"},
"period":{"type":"integer","description":"ns"},
"newest_tick":{"type":"integer","description":"of the whole step's rows, ns since 1970; 0: there is none yet"},
"expected":{"type":"integer","description":"nodes of the step"},
"registered":{"type":"integer","description":"of these have come"},
"nodes":{"type":"array","description":"in the order in which their daemons came","items":{"type":"object",
"additionalProperties":false,"required":["host","parent","carrier","state","since","last_tick"],"properties":{
"host":{"type":"string"},
"parent":{"type":["integer","null"],"description":"to whom it sends: a place in this list; null: the head"},
"carrier":{"type":"string","description":"of the link to the parent: sockets or libfabric's provider; empty: not known"},
"state":{"type":"string","enum":["connected","away","lost","left"]},
"since":{"type":"integer","description":"when the state began, ns since 1970"},
"last_tick":{"type":"integer","description":"the newest tick with its sample in the row of the whole step, ns since 1970; 0: none"},
"note":{"type":"string","description":"why it is away, lost or was replaced"}}}}}})"},

    {"Overview", R"({"type":"object","additionalProperties":false,
"required":["job","title","summary","headline","asked","calls","energy","metrics"],"properties":{
"job":{"type":"string"},"title":{"type":"string","description":"what the step is called"},"summary":{"type":"object"},
"headline":{"type":"array","items":{"type":"string"}},"energy":{"type":"object"},
"calls":{"type":"object","required":["task_seconds","mpi_seconds","mpi_wait_seconds","mpi_waiting",
"file_seconds","mpi","mpi_functions","files","functions"]},"asked":{"type":"array","items":{"type":"object",
"additionalProperties":false,"required":["what","unit","asked","used","text"],"properties":{
"what":{"type":"string"},"unit":{"type":"string"},"asked":{"type":["number","null"]},
"used":{"type":["number","null"]},"text":{"type":"string"}}}},
"metrics":{"type":"array","items":{"type":"object","additionalProperties":false,
"required":["metric","title","help","unit","type","level","series","still","by_task"],"properties":{
"metric":{"type":"string"},"title":{"type":"string"},"help":{"type":"string"},
"unit":{"type":"string"},"type":{"type":"string"},"level":{"type":"integer"},
"series":{"type":"integer"},
"still":{"type":"boolean","description":"counters of 0, gauges that never changed"},
"by_task":{"type":"boolean"}}}}}})"},

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
"properties":{"ts":{"type":"integer","description":"us since 1970"},
"value":{"type":"number"}}}}},
{"type":"object","required":["Gauge"],"additionalProperties":false,"properties":{"Gauge":
{"type":"object","required":["min","max","hits","total"],"properties":{
"min":{"type":["number","null"]},"max":{"type":["number","null"]},"hits":{"const":1},
"total":{"type":["number","null"]}}}}}]})"},

    {"Counters", R"({"type":"object","required":["job","paused"],"additionalProperties":false,
"properties":{"job":{"type":"string"},"paused":{"type":"boolean"}}})"},

    {"Frequencies", R"({"type":"array","items":{"type":"number"}})"},
    {"Periods", R"({"type":"object","required":["metric","dominant_freq","conf","amp","phi",
      "t_start","t_end","total_bytes","ranks","freq","top_freq","n_samples","wave_names"],
      "properties":{"metric":{"type":"string"},
      "dominant_freq":{"$ref":"#/components/schemas/Frequencies"},
      "conf":{"$ref":"#/components/schemas/Frequencies"},
      "amp":{"$ref":"#/components/schemas/Frequencies"},
      "phi":{"$ref":"#/components/schemas/Frequencies"},
      "t_start":{"type":"number"},"t_end":{"type":"number"},"total_bytes":{"type":"integer"},
      "ranks":{"type":"integer"},"freq":{"type":"number"},
      "top_freq":{"type":"object","required":["freq","conf","amp","phi"],"additionalProperties":
      {"$ref":"#/components/schemas/Frequencies"}},"n_samples":{"type":"integer"},
      "wave_names":{"type":"array","items":{"type":"string"}},"period":{"type":"number"},
      "correlation":{"type":"number"},"why_not":{"type":"string"}}})"},
    {"Operation", R"({"type":"object","required":["operation","success"],
"additionalProperties":false,"properties":{"operation":{"type":"string"},
"success":{"type":"boolean"}}})"},

    {"Exporter", R"({"type":"object","required":["target_url","ttype","period","last_scrape","job",
"node","state","up","error"],"additionalProperties":false,"properties":{"job":{"type":"string"},
"period":{"type":"integer","description":"ms"},
"last_scrape":{"type":"integer","description":"s since 1970; 0: none succeeded"},
"target_url":{"type":"string"},"ttype":{"type":"string","enum":["Prometheus","Proxy"]},
"node":{"type":"string","description":"that scrapes it; empty: a program of the step does"},
"state":{"type":"string","enum":["starting","up","down","failed"]},
"up":{"type":"integer","description":"1 if the last scrape worked"},
"error":{"type":"string","description":"why it did not"}}})"},

    {"Alarm", R"({"type":"object","additionalProperties":false,
"required":["name","metric","operator","current","active","pretty"],"properties":{
"name":{"type":"string"},"metric":{"type":"string"},
"operator":{"type":"object","minProperties":1,"maxProperties":1,
"additionalProperties":{"type":["number","null"]}},"current":{"type":["number","null"]},
"active":{"type":"boolean"},"pretty":{"type":"string"},"severity":{"type":"string"},
"rule":{"type":"string"},"text":{"type":"string"},
"since":{"type":"integer","description":"ns since 1970"},"value":{"type":"string"},
"node":{"type":"string"},"rank":{"type":"integer"}}})"},

    {"AlarmTrial", R"({"type":"object","additionalProperties":false,"required":["job","name","rule",
"rows","first","last","raised","nodes_answered","nodes_expected","missing","alarms"],"properties":{
"job":{"type":"string"},"name":{"type":"string"},"rule":{"type":"string"},
"rows":{"type":"integer","description":"ticks that were looked at"},
"first":{"type":"integer","description":"ns since 1970, the first tick; 0: there is none"},
"last":{"type":"integer"},"raised":{"type":"integer","description":"how often"},
"nodes_answered":{"type":"integer"},"nodes_expected":{"type":"integer"},
"missing":{"type":"array","items":{"type":"string"},"description":"metrics that the step lacks"},
"alarms":{"type":"array","items":{"type":"object","additionalProperties":false,
"required":["rule","severity","text","tags","raised","over","value"],"properties":{
"rule":{"type":"string"},"severity":{"type":"string"},"text":{"type":"string"},
"tags":{"type":"object","additionalProperties":{"type":"string"}},
"raised":{"type":"integer","description":"ns since 1970"},
"over":{"type":"integer","description":"0: not until the end"},
"value":{"type":["number","null"]},"by":{"type":"object","required":["node","host"],
"additionalProperties":false,"properties":{"node":{"type":"integer"},"host":{"type":"string"},
"rank":{"type":"integer"}}}}}}}})"},

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
