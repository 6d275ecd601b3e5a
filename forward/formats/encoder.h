// How samples become the body of a request, and how the answer is read: one Encoder for each
// protocol.
//
// Thread safety: const methods from any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "forward/formats/destination.h"
#include "forward/formats/line.h"

namespace sonde::forward {

struct HttpAnswer {
  int status = 0;
  Nanos retry_after = 0;  // 0: the answer does not say
  std::string body;       // the first part of the body
  bool resent = false;    // the request may have arrived before, over a connection that broke
};

// The result of a request.
struct Verdict {
  enum class Kind : unsigned char {
    kDone,     // all samples are taken, except refused ones
    kRetry,    // no sample is taken, for now
    kRefused,  // no sample is taken, since something in the request is wrong
    kStop,     // no sample is taken, and none will be
  };
  Kind kind = Kind::kDone;
  uint64_t refused = 0;  // samples, of kDone
  bool order = false;    // of kRefused: because of a sample's time
  bool there = false;    // of kRefused: as if the same request had been taken before
  std::string why;
};

class Encoder {
 public:
  static std::unique_ptr<Encoder> Make(const Destination& destination);
  virtual ~Encoder() = default;

  // Fills `line.head`.
  virtual void Prepare(Line& line) const = 0;
  // Whether the value can be sent: not every protocol has NaN and infinities.
  virtual bool Takes(double value) const = 0;
  // Appends the body. `described`: the lines whose HELP, TYPE and UNIT go with it.
  virtual void Encode(std::span<const Run> runs, std::span<const Line* const> described,
                      std::string& body) const = 0;
  virtual Verdict Judge(const HttpAnswer& answer) const = 0;
  // "Name: value"
  virtual std::vector<std::string> Headers() const = 0;
  // The value that marks the end of a series; nullptr if there is none.
  virtual const double* StaleMarker() const { return nullptr; }
  // The request that checks for an answer: a GET of `url`, or a POST of an empty `body`.
  struct Probe {
    std::string url;
    bool post = false;
    std::string body;
  };
  virtual Probe MakeProbe(const std::string& url) const = 0;
};

// The rules that all protocols share: 2xx, 429 and 5xx, tokens that are not accepted, paths that do
// not exist.
Verdict JudgeStatus(const HttpAnswer& answer);

std::unique_ptr<Encoder> MakeRemoteWrite();
std::unique_ptr<Encoder> MakeInflux();
std::unique_ptr<Encoder> MakeOpenTsdb();

}  // namespace sonde::forward
