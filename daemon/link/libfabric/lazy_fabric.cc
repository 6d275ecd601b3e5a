#include "daemon/link/libfabric/lazy_fabric.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "daemon/link/libfabric/socket_fabric.h"

namespace sonde::tree {

void LazyFabric::Hold() {
  hold_ = loop_.After(kHoldLimit, [this] {
    if (!waiting_.empty()) {
      log::Warning("opens the fabric without what Slurm tells of it: no task has told it in {} s",
                   kHoldLimit / kSecond);
    }
    Release();
  });
}

void LazyFabric::Release() {
  loop_.Cancel(std::exchange(hold_, 0));
  if (!waiting_.empty() && opening_ == nullptr) Open();
}

void LazyFabric::With(const FabricOptions& options, Use use) {
  if (fabric_ != nullptr) return use(fabric_.get());
  if (!failure_.ok()) return use(failure_);
  if (waiting_.empty()) {
    options_ = options;
    const std::vector<std::string> wanted = Fabric::Preference(options.provider);
    const auto sockets = std::find(wanted.begin(), wanted.end(), SocketFabric::kProvider);
    if (sockets != wanted.end()) {
      sockets_ =
          std::make_unique<SocketFabric>(loop_, SocketFabric::AddressOn(options), options.ports);
    }
    if (sockets == wanted.begin()) {
      fabric_ = std::move(sockets_);
      return use(fabric_.get());
    }
  }
  waiting_.push_back(std::move(use));
  if (opening_ == nullptr && hold_ == 0) Open();
}

void LazyFabric::Open() {
  Result<std::unique_ptr<BackgroundCall>> call =
      Fabric::Open(loop_, options_,
                   [this](Result<std::unique_ptr<Fabric>> fabric) { OnOpened(std::move(fabric)); });
  if (!call.ok()) return OnOpened(call.status());
  opening_ = *std::move(call);
}

void LazyFabric::OnOpened(Result<std::unique_ptr<Fabric>> fabric) {
  if (fabric.ok()) {
    fabric_ = *std::move(fabric);
  } else if (sockets_ != nullptr) {
    log::Info("{}; sockets are used", fabric.status().message());
    fabric_ = std::move(sockets_);
  } else {
    failure_ = fabric.status();
  }
  for (const Use& use : std::exchange(waiting_, {})) {
    use(fabric_ != nullptr ? Result<Fabric*>(fabric_.get()) : Result<Fabric*>(failure_));
  }
}

}  // namespace sonde::tree
