// Gets a batch of samples to a receiver: repeats a batch that the receiver cannot take now, splits
// a refused batch until the wrong sample is alone, and counts.
//
// Thread safety: one thread at a time; Patience is called from that thread only.
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

// How long the caller waits for a receiver.
class Patience {
 public:
  virtual ~Patience() = default;
  // Waits at most so long; false: give up.
  virtual bool Wait(Nanos time) = 0;
  // Whether a request under way may go on.
  virtual bool GoOn() = 0;
  // The receiver has taken samples, so it is there.
  virtual void Succeeded() {}
};

class Delivery {
 public:
  static constexpr Nanos kFirstWait = 500 * kMillisecond;
  static constexpr Nanos kLongestWait = 30 * kSecond;
  // So many samples refused one after another, with none taken: the receiver takes none.
  static constexpr uint64_t kRefusedAtMost = 64;

  Delivery(const Destination& destination, std::unique_ptr<Http> http, Patience& patience);
  ~Delivery();

  const Encoder& encoder() const { return *encoder_; }
  const Destination& destination() const { return destination_; }

  struct Outcome {
    uint64_t taken = 0;
    uint64_t refused = 0;
  };
  // Records what becomes of a batch.
  class Witness {
   public:
    virtual ~Witness() = default;
    // An attempt failed, and will be repeated.
    virtual void OnFailure(std::string_view why) = 0;
    // Called before a batch is sent in parts; if this fails it is not sent.
    virtual Status OnSplit() = 0;
  };
  // `perhaps_there`: the receiver may have taken the very same batch already.
  // A failure: the batch was not taken, or only a part of it, and should come again later.
  Result<Outcome> Send(const Runs& runs, bool perhaps_there, Witness& witness);

  // Whether the receiver may have taken the batch although the last Send failed.
  bool perhaps_there() const { return perhaps_there_; }

  uint64_t requests() const { return requests_; }
  uint64_t bytes() const { return bytes_; }
  // Why the first refused sample was refused; "" if none was.
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
  std::set<std::string> described_;  // names whose HELP and TYPE were sent
  std::string body_;
  uint64_t requests_ = 0;
  uint64_t bytes_ = 0;
  uint64_t refused_in_turn_ = 0;
  bool last_was_order_ = false;
  bool perhaps_there_ = false;
  std::string refusal_;
};

}  // namespace sonde::forward
