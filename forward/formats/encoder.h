// How samples become the body of a request, and what the answer to it means: one Encoder for each
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
  Nanos retry_after = 0;  // 0: it does not say
  std::string body;       // its begin
  bool resent = false;    // the request may have arrived before, over a connection that broke
};

// What became of a request.
struct Verdict {
  enum class Kind : unsigned char {
    kDone,     // all is taken, but for what is refused
    kRetry,    // nothing is, for now
    kRefused,  // nothing is, since something in it is wrong
    kStop,     // nothing is, and nothing else will be
  };
  Kind kind = Kind::kDone;
  uint64_t refused = 0;  // samples, of kDone
  bool order = false;    // of kRefused: for the time of a sample
  bool there = false;    // of kRefused: as it would be if the same request had been taken before
  std::string why;
};

class Encoder {
 public:
  static std::unique_ptr<Encoder> Make(const Destination& destination);
  virtual ~Encoder() = default;

  // Fills `line.head`.
  virtual void Prepare(Line& line) const = 0;
  // Whether it can be told: not every protocol has NaN and infinities.
  virtual bool Takes(double value) const = 0;
  // Appends the body. `described`: the lines of which HELP, TYPE and UNIT are told with it.
  virtual void Encode(std::span<const Run> runs, std::span<const Line* const> described,
                      std::string& body) const = 0;
  virtual Verdict Judge(const HttpAnswer& answer) const = 0;
  // "Name: value"
  virtual std::vector<std::string> Headers() const = 0;
  // The value that says that a series has ended; nullptr if there is none.
  virtual const double* StaleMarker() const { return nullptr; }
  // What asks whether anybody answers: a GET of `url`, or a POST of an empty `body`.
  struct Probe {
    std::string url;
    bool post = false;
    std::string body;
  };
  virtual Probe MakeProbe(const std::string& url) const = 0;
};

// What all have in common: 2xx, 429 and 5xx, tokens that are not accepted, paths that are not
// there.
Verdict JudgeStatus(const HttpAnswer& answer);

std::unique_ptr<Encoder> MakeRemoteWrite();
std::unique_ptr<Encoder> MakeInflux();
std::unique_ptr<Encoder> MakeOpenTsdb();

}  // namespace sonde::forward
