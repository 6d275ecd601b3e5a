#include "daemon/tree/lazy_fabric.h"

#include <utility>

#include "daemon/tree/socket_fabric.h"

namespace sonde::tree {

void LazyFabric::With(const FabricOptions& options, Use use) {
  if (fabric_ != nullptr) return use(fabric_.get());
  if (!failure_.ok()) return use(failure_);
  if (options.provider == SocketFabric::kProvider) {
    fabric_ = std::make_unique<SocketFabric>(
        loop_, options.interface.empty() ? options.local_address : options.interface);
    return use(fabric_.get());
  }
  waiting_.push_back(std::move(use));
  if (opening_ != nullptr) return;
  Result<std::unique_ptr<BackgroundCall>> call =
      Fabric::Open(loop_, options,
                   [this](Result<std::unique_ptr<Fabric>> fabric) { OnOpened(std::move(fabric)); });
  if (!call.ok()) return OnOpened(call.status());
  opening_ = *std::move(call);
}

void LazyFabric::OnOpened(Result<std::unique_ptr<Fabric>> fabric) {
  if (fabric.ok()) {
    fabric_ = *std::move(fabric);
  } else {
    failure_ = fabric.status();
  }
  for (const Use& use : std::exchange(waiting_, {})) {
    use(fabric_ != nullptr ? Result<Fabric*>(fabric_.get()) : Result<Fabric*>(failure_));
  }
}

}  // namespace sonde::tree
