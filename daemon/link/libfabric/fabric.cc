#include "daemon/link/libfabric/fabric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rdma/fabric.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "core/bytes.h"
#include "daemon/link/libfabric/fabric_domain.h"
#include "daemon/link/libfabric/fabric_info.h"
#include "daemon/link/libfabric/fabric_library.h"
#include "daemon/link/libfabric/fabric_link.h"
#include "daemon/link/libfabric/native_fabrics.h"
#include "daemon/link/libfabric/rdm_domain.h"
#include "daemon/link/libfabric/rdm_link.h"
#include "daemon/link/libfabric/socket_fabric.h"

namespace sonde::tree {
namespace {

// libfabric's constructors and fi_getinfo must not be under way when the process exits.
constexpr Nanos kOpenPatience = kSecond;

// A kind of endpoints behind the neutral interface.
template <typename Domain, typename DomainLink>
class FabricOf final : public Fabric {
 public:
  explicit FabricOf(std::shared_ptr<Domain> domain) : domain_(std::move(domain)) {}
  ~FabricOf() override { domain_->StopListening(); }

  Result<std::string> Listen(Accepted accepted) override {
    return domain_->Listen(std::move(accepted));
  }
  void StopListening() override { domain_->StopListening(); }
  Result<std::unique_ptr<Link>> Connect(std::string_view address) override {
    auto link = DomainLink::Connect(domain_, address);
    if (!link.ok()) return link.status();
    return std::unique_ptr<Link>(*std::move(link));
  }
  std::string name() const override { return domain_->name(); }

 private:
  std::shared_ptr<Domain> domain_;
};

using Domains = std::variant<std::shared_ptr<FabricDomain>, std::shared_ptr<RdmDomain>>;

std::unique_ptr<Fabric> FabricWith(std::shared_ptr<FabricDomain> domain) {
  return std::make_unique<FabricOf<FabricDomain, FabricLink>>(std::move(domain));
}
std::unique_ptr<Fabric> FabricWith(std::shared_ptr<RdmDomain> domain) {
  return std::make_unique<FabricOf<RdmDomain, RdmLink>>(std::move(domain));
}

Result<Domains> OpenEndpoints(const FabricLibrary& library, Endpoint type,
                              const std::string& provider, const FabricOptions& options) {
  Result<FabricInfo> info = ChooseInfo(library, type, provider, options);
  if (!info.ok()) return info.status();
  if (type == Endpoint::kMsg) {
    auto domain = FabricDomain::Open(library, options, *std::move(info));
    if (!domain.ok()) return domain.status();
    return Domains(*std::move(domain));
  }
  auto domain = RdmDomain::Open(library, options, *std::move(info));
  if (!domain.ok()) return domain.status();
  return Domains(*std::move(domain));
}

// With the first kind of endpoints that works; the reasons of all others if none does.
Result<Domains> OpenProvider(const FabricLibrary& library, const std::string& provider,
                             const std::vector<ProviderOffer>& offers,
                             const FabricOptions& options) {
  const auto offer = std::find_if(offers.begin(), offers.end(),
                                  [&](const ProviderOffer& one) { return one.name == provider; });
  if (offer == offers.end()) {
    return Status(Code::kNotFound, fmt::format("provider '{}' not found", provider));
  }
  Status why(Code::kUnsupported, fmt::format("provider '{}' has no endpoints of a kind that can be "
                                             "used",
                                             provider));
  bool tried = false;
  for (const Endpoint type : options.endpoints) {
    if (!(type == Endpoint::kRdm ? offer->rdm : offer->msg)) continue;
    Result<Domains> domains = OpenEndpoints(library, type, provider, options);
    if (domains.ok()) return domains;
    if (!std::exchange(tried, true)) why = domains.status();
  }
  return why;
}

std::string Names(const std::vector<ProviderOffer>& offers) {
  std::vector<std::string> names;
  names.reserve(offers.size());
  for (const ProviderOffer& offer : offers) names.push_back(offer.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

// Of the preferred providers the first that works.
Result<Domains> OpenFirst(const FabricOptions& options) {
  const auto library = FabricLibrary::Load();
  if (!library.ok()) return library.status();
  const std::vector<std::string> wanted = Fabric::Preference(options.provider);
  const std::vector<ProviderOffer> offers = OfferedProviders(**library);
  std::vector<std::string> reasons;
  bool missing = false;
  for (const std::string& provider : wanted) {
    if (provider == SocketFabric::kProvider) break;  // what LazyFabric falls back on
    Result<Domains> domains = OpenProvider(**library, provider, offers, options);
    if (domains.ok()) return domains;
    reasons.emplace_back(domains.status().message());
    missing = missing || reasons.back().ends_with("not found");
  }
  std::string text = fmt::format("{}", fmt::join(reasons, "; "));
  if (missing) text += fmt::format("; available: {}", Names(offers));
  return Status(Code::kNotFound, std::move(text));
}

std::string KindOf(const Domains& domains) {
  if (std::holds_alternative<std::shared_ptr<FabricDomain>>(domains)) {
    return "connected endpoints (FI_EP_MSG)";
  }
  return std::get<std::shared_ptr<RdmDomain>>(domains)->polls()
             ? "reliable datagrams (FI_EP_RDM), polled: it has no descriptor to wait on"
             : "reliable datagrams (FI_EP_RDM)";
}

void Try(const FabricLibrary& library, const std::string& provider,
         const std::vector<ProviderOffer>& offers, const FabricOptions& options,
         ProviderFinding& finding) {
  const Result<Domains> domains = OpenProvider(library, provider, offers, options);
  finding.chosen = domains.ok();
  if (domains.ok()) {
    const auto where = std::visit([](const auto& domain) { return domain->where(); }, *domains);
    finding.text = fmt::format("at {}, {}", where, KindOf(*domains));
  } else {
    finding.text = domains.status().message();
  }
}

}  // namespace

std::vector<std::string> Fabric::Preference(const std::string& provider, const std::string& sys) {
  std::vector<std::string> names;
  if (provider == "auto") {
    names = NativeFabrics(sys);
    names.emplace_back(SocketFabric::kProvider);
    return names;
  }
  for (size_t at = 0; at <= provider.size();) {
    const size_t comma = std::min(provider.find(',', at), provider.size());
    names.push_back(provider.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

// Addresses of verbs are those of IP, as those of providers made of TCP are.
std::string Fabric::CarrierOf(std::string_view address, const std::string& provider) {
  if (SocketFabric::Parse(address).ok()) return std::string(SocketFabric::kProvider);
  ByteReader reader(address);
  switch (reader.Fixed<uint32_t>()) {
    case FI_ADDR_CXI:
      return "cxi";
    case FI_ADDR_EFA:
      return "efa";
    case FI_ADDR_OPX:
      return "opx";
    case FI_ADDR_PSMX3:
      return "psm3";
    case FI_SOCKADDR_IB:
      return "verbs";
    default:
      break;
  }
  if (provider == "auto") return "verbs";
  return provider.find(',') == std::string::npos ? provider : "libfabric";
}

Result<std::unique_ptr<BackgroundCall>> Fabric::Open(Loop& loop, FabricOptions options,
                                                     Opened opened) {
  const auto open = [&loop, options = std::move(options),
                     opened = std::move(opened)]() -> Loop::Task {
    Result<Domains> domains = OpenFirst(options);
    return [&loop, opened, domains = std::move(domains)]() {
      if (!domains.ok()) return opened(domains.status());
      const Status attached =
          std::visit([&](const auto& domain) { return domain->Attach(loop); }, *domains);
      if (!attached.ok()) return opened(attached);
      opened(std::visit([](const auto& domain) { return FabricWith(domain); }, *domains));
    };
  };
  return BackgroundCall::Start(loop, open, kOpenPatience);
}

Result<FabricFindings> Fabric::Examine(const FabricOptions& options) {
  const std::vector<std::string> wanted = Preference(options.provider);
  const auto library = FabricLibrary::Load();
  const bool sockets_wanted =
      std::find(wanted.begin(), wanted.end(), SocketFabric::kProvider) != wanted.end();
  if (!library.ok() && !sockets_wanted) return library.status();
  FabricFindings findings;
  std::vector<ProviderOffer> offers;
  if (library.ok()) {
    findings.library = "libfabric " + (*library)->VersionText();
    offers = OfferedProviders(**library);
  }
  std::string chosen;
  for (const std::string& provider : wanted) {
    ProviderFinding& finding = findings.providers.emplace_back();
    finding.provider = provider;
    const bool sockets = provider == SocketFabric::kProvider;
    if (!chosen.empty()) {
      finding.text = fmt::format("not needed: {} is preferred", chosen);
    } else if (sockets) {
      finding.chosen = true;
      finding.text = "plain TCP, without libfabric";
      const std::string at = SocketFabric::AddressOn(options);
      if (!at.empty()) finding.text = fmt::format("at {}, {}", at, finding.text);
    } else if (!library.ok()) {
      finding.text = library.status().message();
    } else {
      Try(**library, provider, offers, options, finding);
    }
    if (finding.chosen) chosen = provider;
  }
  for (const ProviderOffer& offer : offers) {
    if (offer.name == SocketFabric::kProvider) continue;  // libfabric's, which is not used
    if (std::find(wanted.begin(), wanted.end(), offer.name) != wanted.end()) continue;
    findings.providers.push_back({.provider = offer.name, .text = "available, not asked for"});
  }
  return findings;
}

}  // namespace sonde::tree
