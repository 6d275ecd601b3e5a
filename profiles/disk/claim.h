// A claim on db/, which all hosts see: there is one at a time.
//
// Some shared file systems grant a lock (file_lock.h) on each host by itself. Making a file that
// must not be there yet, and renaming one, are done by one host only on all of them. So who has the
// lock of this host makes the claim's file, with a text that nobody else writes, and has the claim
// as long as the file holds that text.
//
// A claim is taken from its holder if that is a dead process of this host, or another host that did
// not touch the file for kSilence. The holder may live and have been suspended. So it looks at the
// file before each change of db/ and once more before it says that something is safe: what was
// written before that look is found by whoever takes the claim afterwards. A look ends with the
// name of the file, so that a holder which is suspended while it reads does not go by the file that
// was there before.
//
// Ages are told by the file system's clock, not by this host's.
//
// Thread safety: Check from any thread; made and destroyed by one.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/status.h"
#include "core/time.h"

namespace sonde {

// Whether files may still be changed.
class Fence {
 public:
  virtual ~Fence() = default;
  virtual Status Check() = 0;
};

class Claim final : public Fence {
 public:
  static constexpr Nanos kSilence = 600 * kSecond;
  // Check touches the file that often.
  static constexpr Nanos kTouch = 20 * kSecond;

  // Who claims: the name is for people; two boots are two hosts.
  struct Host {
    std::string name;
    std::string boot;
    static Host Own();
  };

  // The caller has the lock of this host. kBusy: another host has the claim.
  static Result<std::shared_ptr<Claim>> Take(const std::string& path,
                                             const Host& host = Host::Own());
  // Gives the claim back if it is still ours.
  ~Claim() override;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // kBusy: it was taken by another host, and stays lost.
  Status Check() override;

 private:
  // Whether the file is ours; touches it now and then.
  Result<bool> Look();

  Claim(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  const std::string path_;
  const std::string text_;
  std::atomic<bool> lost_ = false;
  std::atomic<Nanos> touched_ = 0;  // monotonic
};

}  // namespace sonde
