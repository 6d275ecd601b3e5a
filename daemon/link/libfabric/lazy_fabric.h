// The fabric, opened when it is first needed and once: loading libfabric costs more than a short
// step should pay. With the provider `sockets` it is a SocketFabric, which is there at once; with
// one of libfabric's and then `sockets`, a SocketFabric if that cannot be opened.
//
// Thread safety: the loop's thread only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "daemon/link/libfabric/fabric.h"
#include "daemon/loop.h"

namespace sonde::tree {

class LazyFabric {
 public:
  using Use = std::function<void(const Result<Fabric*>& fabric)>;

  // How long Hold holds at most.
  static constexpr Nanos kHoldLimit = 10 * kSecond;

  explicit LazyFabric(Loop& loop) : loop_(loop) {}
  ~LazyFabric() { loop_.Cancel(hold_); }
  LazyFabric(const LazyFabric&) = delete;
  LazyFabric& operator=(const LazyFabric&) = delete;

  // What libfabric reads in the environment is not there yet: nothing of libfabric's is opened
  // before Release, or kHoldLimit. Sockets do not wait.
  void Hold();
  void Release();

  // Calls `use` now if it is known whether there is a fabric, else when it is. The options count at
  // the first call; a failure is final.
  void With(const FabricOptions& options, Use use);
  // nullptr if it is not open.
  Fabric* get() const { return fabric_.get(); }

 private:
  void Open();
  void OnOpened(Result<std::unique_ptr<Fabric>> fabric);

  Loop& loop_;
  Loop::TimerId hold_ = 0;
  FabricOptions options_;  // of the first call
  std::unique_ptr<BackgroundCall> opening_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Fabric> sockets_;  // to fall back on
  Status failure_;
  std::vector<Use> waiting_;
};

}  // namespace sonde::tree
