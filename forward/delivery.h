// Gets a batch of samples to a receiver: repeats what it cannot take now, cuts up what it refuses
// until what is wrong is alone, and counts.
//
// Thread safety: one thread at a time; Patience may be asked from it only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "forward/formats/encoder.h"
#include "forward/http.h"

namespace sonde::forward {

// How long somebody waits for a receiver.
class Patience {
 public:
  virtual ~Patience() = default;
  // Waits so long, or less; false: no longer, give up.
  virtual bool Wait(Nanos time) = 0;
  // Whether a request that is on its way may go on.
  virtual bool GoOn() = 0;
  // Something was taken: the receiver is there.
  virtual void Succeeded() {}
};

class Delivery {
 public:
  static constexpr Nanos kFirstWait = 500 * kMillisecond;
  static constexpr Nanos kLongestWait = 30 * kSecond;
  // So many samples refused one after another, and none taken in between: it takes none.
  static constexpr uint64_t kRefusedAtMost = 64;

  Delivery(const Destination& destination, std::unique_ptr<Http> http, Patience& patience);
  ~Delivery();

  const Encoder& encoder() const { return *encoder_; }
  const Destination& destination() const { return destination_; }

  struct Outcome {
    uint64_t taken = 0;
    uint64_t refused = 0;
  };
  // Who keeps what becomes of a batch.
  class Witness {
   public:
    virtual ~Witness() = default;
    // An attempt failed, and will be repeated.
    virtual void OnFailure(std::string_view why) = 0;
    // Before a batch goes in parts; if this fails it does not.
    virtual Status OnSplit() = 0;
  };
  // `perhaps_there`: the receiver may have taken the very same batch already.
  // A failure: the batch is not taken, or not all of it is, and it should come again later.
  Result<Outcome> Send(const Runs& runs, bool perhaps_there, Witness& witness);

  // Whether what Send last failed with may have been taken all the same.
  bool perhaps_there() const { return perhaps_there_; }

  uint64_t requests() const { return requests_; }
  uint64_t bytes() const { return bytes_; }
  // Why samples were refused, the first time; "" if none were.
  const std::string& refusal() const { return refusal_; }

 private:
  Result<Verdict> Attempt(std::span<const Run> runs, bool& ambiguous, Witness& witness);
  Status SendPart(std::span<const Run> runs, bool perhaps_there, bool whole, Witness& witness,
                  Outcome& outcome);
  Status SendHalves(std::span<const Run> runs, Witness& witness, Outcome& outcome);
  Status RefusesAll() const;

  const Destination destination_;
  const std::unique_ptr<Encoder> encoder_;
  const std::unique_ptr<Http> http_;
  Patience& patience_;
  std::set<std::string> described_;  // names of which HELP and TYPE were sent
  std::string body_;
  uint64_t requests_ = 0;
  uint64_t bytes_ = 0;
  uint64_t refused_in_turn_ = 0;
  bool last_was_order_ = false;
  bool perhaps_there_ = false;
  std::string refusal_;
};

}  // namespace sonde::forward
