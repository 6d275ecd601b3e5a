#include "forward/formats/encoder.h"

#include <fmt/core.h>

namespace sonde::forward {

std::unique_ptr<Encoder> Encoder::Make(const Destination& destination) {
  switch (destination.protocol) {
    case Protocol::kInflux:
      return MakeInflux();
    case Protocol::kOpenTsdb:
      return MakeOpenTsdb();
    default:
      break;
  }
  return MakeRemoteWrite();
}

namespace {

// The answer's own words, on one line.
std::string Words(std::string_view body) {
  constexpr size_t kMost = 300;
  std::string out;
  for (const char c : body.substr(0, kMost)) {
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  while (out.ends_with(' ')) out.pop_back();
  return names::IsPlainText(out) ? out : "";
}

}  // namespace

Verdict JudgeStatus(const HttpAnswer& answer) {
  Verdict verdict;
  if (answer.status >= 200 && answer.status < 300) return verdict;
  const std::string words = Words(answer.body);
  verdict.why = fmt::format("HTTP status {}{}{}", answer.status, words.empty() ? "" : ": ", words);
  if (answer.status == 429 || answer.status >= 500) {
    verdict.kind = Verdict::Kind::kRetry;
  } else if (answer.status == 400 || answer.status == 409 || answer.status == 413 ||
             answer.status == 422) {
    verdict.kind = Verdict::Kind::kRefused;
  } else {
    verdict.kind = Verdict::Kind::kStop;
  }
  return verdict;
}

}  // namespace sonde::forward
