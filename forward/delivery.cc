#include "forward/delivery.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>

namespace sonde::forward {
namespace {

// Between 0.8 and 1.2 of it, so that many senders do not come at once.
Nanos Jittered(Nanos wait) {
  thread_local std::minstd_rand random(std::random_device{}());
  return wait * std::uniform_int_distribution<Nanos>(80, 120)(random) / 100;
}

}  // namespace

Delivery::Delivery(const Destination& destination, std::unique_ptr<Http> http, Patience& patience)
    : destination_(destination),
      encoder_(Encoder::Make(destination)),
      http_(std::move(http)),
      patience_(patience) {}

Delivery::~Delivery() = default;

Result<Delivery::Outcome> Delivery::Send(const Runs& runs, bool perhaps_there, Witness& witness) {
  Outcome outcome;
  perhaps_there_ = false;
  if (runs.empty()) return outcome;
  SONDE_RETURN_IF_ERROR(SendPart(runs, perhaps_there, true, witness, outcome));
  return outcome;
}

// Repeats until there is an answer other than "not now".
Result<Verdict> Delivery::Attempt(std::span<const Run> runs, bool& ambiguous, Witness& witness) {
  std::vector<const Line*> described;
  for (const Run& run : runs) {
    if (described_.insert(run.line->name).second) described.push_back(run.line);
  }
  body_.clear();
  encoder_->Encode(runs, described, body_);
  for (Nanos wait = kFirstWait;; wait = std::min(2 * wait, kLongestWait)) {
    const Result<HttpAnswer> answer = http_->Post(destination_.url, encoder_->Headers(), body_,
                                                  [this] { return patience_.GoOn(); });
    Verdict verdict;
    Nanos asked_to_wait = 0;
    if (answer.ok()) {
      ++requests_;
      bytes_ += body_.size();
      verdict = encoder_->Judge(*answer);
      ambiguous = ambiguous || answer->resent;
      asked_to_wait = answer->retry_after;
      if (verdict.kind != Verdict::Kind::kRetry) return verdict;
    } else {
      if (answer.status().code() == Code::kInvalid || answer.status().code() == Code::kPermission) {
        return answer.status();
      }
      verdict.why = answer.status().message();
    }
    // A gateway may have lost the answer; a receiver that was not reached has taken nothing.
    const bool lost = answer.ok() ? answer->status == 502 || answer->status == 504
                                  : answer.status().code() == Code::kTimeout;
    ambiguous = ambiguous || lost;
    perhaps_there_ = perhaps_there_ || lost;
    witness.OnFailure(verdict.why);
    if (!patience_.Wait(std::max(Jittered(wait), asked_to_wait))) {
      return Status(Code::kUnavailable, verdict.why);
    }
  }
}

Status Delivery::SendPart(std::span<const Run> runs, bool perhaps_there, bool whole,
                          Witness& witness, Outcome& outcome) {
  bool ambiguous = perhaps_there;
  Result<Verdict> verdict = Attempt(runs, ambiguous, witness);
  if (!verdict.ok()) return verdict.status();
  const uint64_t count = CountSamples(runs);
  switch (verdict->kind) {
    case Verdict::Kind::kDone: {
      const uint64_t refused = std::min(verdict->refused, count);
      outcome.taken += count - refused;
      outcome.refused += refused;
      if (refused > 0 && refusal_.empty()) refusal_ = verdict->why;
      refused_in_turn_ = 0;
      patience_.Succeeded();
      return {};
    }
    case Verdict::Kind::kStop:
    case Verdict::Kind::kRetry:
      return {Code::kPermission, verdict->why};
    case Verdict::Kind::kRefused:
      break;
  }
  // A request is taken as a whole, so if it was taken before, its samples are out of order now.
  if (ambiguous && verdict->there) {
    outcome.taken += count;
    patience_.Succeeded();
    return {};
  }
  if (refusal_.empty()) refusal_ = verdict->why;
  last_was_order_ = verdict->order;
  if (count > 1) {
    if (whole) SONDE_RETURN_IF_ERROR(witness.OnSplit());
    return SendHalves(runs, witness, outcome);
  }
  ++outcome.refused;
  return ++refused_in_turn_ < kRefusedAtMost ? Status() : RefusesAll();
}

// Splits by lines; a single line into its earlier samples and its later ones.
Status Delivery::SendHalves(std::span<const Run> runs, Witness& witness, Outcome& outcome) {
  Run halves[2];
  std::span<const Run> parts[2];
  if (runs.size() > 1) {
    parts[0] = runs.first(runs.size() / 2);
    parts[1] = runs.subspan(runs.size() / 2);
  } else {
    const auto samples = runs[0].samples;
    halves[0] = {runs[0].line, samples.first(samples.size() / 2)};
    halves[1] = {runs[0].line, samples.subspan(samples.size() / 2)};
    parts[0] = {&halves[0], 1};
    parts[1] = {&halves[1], 1};
  }
  for (const auto& part : parts) {
    SONDE_RETURN_IF_ERROR(SendPart(part, false, false, witness, outcome));
  }
  return {};
}

Status Delivery::RefusesAll() const {
  const bool prometheus = destination_.protocol == Protocol::kPrometheus;
  return {Code::kLimit,
          fmt::format("it refuses every sample: {}{}", refusal_,
                      prometheus && last_was_order_
                          ? "; samples that are older than its newest ones Prometheus takes "
                            "with storage.tsdb.out_of_order_time_window in its configuration"
                          : "")};
}

}  // namespace sonde::forward
