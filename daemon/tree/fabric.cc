#include "daemon/tree/fabric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "daemon/tree/fabric_domain.h"
#include "daemon/tree/fabric_library.h"
#include "daemon/tree/fabric_link.h"

namespace sonde::tree {
namespace {

// libfabric's constructors and fi_getinfo must not be under way when the process exits.
constexpr Nanos kOpenPatience = kSecond;

// FI_EP_MSG behind the neutral interface.
class MsgFabric final : public Fabric {
 public:
  explicit MsgFabric(std::shared_ptr<FabricDomain> domain) : domain_(std::move(domain)) {}
  ~MsgFabric() override { domain_->StopListening(); }

  Result<std::string> Listen(Accepted accepted) override {
    return domain_->Listen(std::move(accepted));
  }
  Result<std::unique_ptr<Link>> Connect(std::string_view address) override {
    auto link = FabricLink::Connect(domain_, address);
    if (!link.ok()) return link.status();
    return std::unique_ptr<Link>(*std::move(link));
  }
  std::string name() const override { return domain_->name(); }

 private:
  std::shared_ptr<FabricDomain> domain_;
};

}  // namespace

Result<std::unique_ptr<BackgroundCall>> Fabric::Open(Loop& loop, FabricOptions options,
                                                     Opened opened) {
  const auto open = [&loop, options = std::move(options),
                     opened = std::move(opened)]() -> Loop::Task {
    auto domain = FabricDomain::Open(options);
    return [&loop, opened, domain = std::move(domain)]() {
      if (!domain.ok()) return opened(domain.status());
      const Status attached = (*domain)->Attach(loop);
      if (!attached.ok()) return opened(attached);
      opened(std::unique_ptr<Fabric>(std::make_unique<MsgFabric>(*domain)));
    };
  };
  return BackgroundCall::Start(loop, open, kOpenPatience);
}

Result<std::vector<std::string>> Fabric::AvailableProviders() {
  const auto library = FabricLibrary::Load();
  if (!library.ok()) return library.status();
  return FabricDomain::Providers(**library);
}

}  // namespace sonde::tree
