#include "forward/job.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/log.h"

namespace sonde::forward {

std::vector<Destination> ConfiguredDestinations(const Config& config, Status& error) {
  std::vector<Destination> out;
  if (!config.forward) return out;
  for (const auto& [name, text] : config.forward_lines) {
    Result<Destination> one = ParseDestination(text);
    if (one.ok() && IsFile(one->protocol)) {
      one = Status(Code::kInvalid, "a running step is not sent to a file: use sonde export --to");
    }
    if (!one.ok()) {
      if (error.ok()) error = one.status().Within("forward." + name);
      continue;
    }
    one->name = name;
    out.push_back(*std::move(one));
  }
  return out;
}

Result<Sent> SendProfile(const std::string& archive, const std::string& key,
                         const Destination& destination, Patience& patience,
                         const SendOptions& options) {
  Result<std::shared_ptr<const Archive>> opened = Archive::Open(archive);
  if (!opened.ok()) return opened.status();
  Result<std::unique_ptr<Http>> http = Http::Open(destination);
  if (!http.ok()) return http.status();
  Result<Record> record = Record::Open(archive, key, destination, options.again);
  if (!record.ok()) return record.status();
  Sent sent;
  sent.nothing_new = record->state().done;
  Delivery delivery(destination, *std::move(http), patience);
  Exporter exporter(**opened, key, delivery, *record, options.on_progress);
  const Status status = exporter.Pass();
  if (!status.ok()) return status;
  sent.progress = exporter.progress();
  sent.requests = delivery.requests();
  sent.bytes = delivery.bytes();
  sent.done = record->state().done;
  sent.refusal = delivery.refusal();
  return sent;
}

Status CatchUp(const std::string& archive, const Destination& destination, Patience& patience,
               const std::string& skip) {
  const std::string id = destination.Id();
  for (const PendingRecord& pending : ListPending(archive)) {
    if (pending.id != id || pending.key == skip || !patience.GoOn()) continue;
    const Result<std::shared_ptr<const Archive>> opened = Archive::Open(archive);
    if (!opened.ok()) return opened.status();
    const Result<ProfileEntry> entry = (*opened)->Entry(pending.key);
    if (!entry.ok() || entry->running) continue;
    const Result<Sent> sent = SendProfile(archive, pending.key, destination, patience, {});
    if (sent.ok()) {
      log::Info("{}: sent {} samples of {} that were left", destination.url, sent->progress.taken,
                pending.key);
      continue;
    }
    const Code code = sent.status().code();
    if (code == Code::kUnavailable || code == Code::kTimeout || code == Code::kPermission) {
      return sent.status();
    }
    log::Warning("{}: {}: {}", destination.url, pending.key, sent.status().message());
  }
  return {};
}

Result<std::string> ProbeDestination(const Destination& destination) {
  const Result<std::unique_ptr<Http>> http = Http::Open(destination);
  if (!http.ok()) return http.status();
  const std::unique_ptr<Encoder> encoder = Encoder::Make(destination);
  const Encoder::Probe probe = encoder->MakeProbe(destination.url);
  const auto answer = probe.post ? (*http)->Post(probe.url, encoder->Headers(), probe.body, nullptr)
                                 : (*http)->Get(probe.url);
  if (!answer.ok()) return answer.status();
  const Verdict verdict = JudgeStatus(*answer);
  if (verdict.kind == Verdict::Kind::kDone) return std::string("answers");
  return Status(Code::kUnavailable, verdict.why);
}

}  // namespace sonde::forward
