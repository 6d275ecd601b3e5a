#include "launcher/site/munge.h"

#include <dlfcn.h>
#include <munge.h>

#include <cstdlib>
#include <memory>
#include <utility>

namespace sonde::launch {
namespace {

constexpr const char* kLibrary = "libmunge.so.2";

// A function of the library's; nullptr if it has none of that name.
template <typename Function>
Function* Named(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// What munge is told of how to do it.
class Way {
 public:
  static Result<Way> Make(void* library, const std::string& socket) {
    Way way(library);
    const auto create = Named<decltype(munge_ctx_create)>(library, "munge_ctx_create");
    if (create != nullptr) way.context_ = create();
    if (way.context_ == nullptr) return way.Failure(EMUNGE_NO_MEMORY);
    if (!socket.empty()) SONDE_RETURN_IF_ERROR(way.Set(MUNGE_OPT_SOCKET, socket.c_str()));
    return way;
  }
  Way(Way&& other) noexcept
      : library_(other.library_), context_(std::exchange(other.context_, nullptr)) {}
  Way& operator=(Way&&) = delete;
  ~Way() {
    const auto destroy = Named<decltype(munge_ctx_destroy)>(library_, "munge_ctx_destroy");
    if (destroy != nullptr && context_ != nullptr) destroy(context_);
  }

  template <typename Value>
  Status Set(munge_opt option, Value value) {
    const auto set = Named<decltype(munge_ctx_set)>(library_, "munge_ctx_set");
    const munge_err_t error = set == nullptr ? EMUNGE_SNAFU : set(context_, option, value);
    return error == EMUNGE_SUCCESS ? Status() : Failure(error);
  }
  Status Failure(munge_err_t error) const {
    const auto words = Named<decltype(munge_strerror)>(library_, "munge_strerror");
    return {Code::kUnavailable,
            std::string("munge: ") + (words == nullptr ? "unknown" : words(error))};
  }
  munge_ctx_t get() const { return context_; }

 private:
  explicit Way(void* library) : library_(library) {}

  void* library_;
  munge_ctx_t context_ = nullptr;
};

// They were opened before, or at a time that munge finds wrong; they are as they were made.
bool IsGenuine(munge_err_t error) {
  return error == EMUNGE_SUCCESS || error == EMUNGE_CRED_EXPIRED || error == EMUNGE_CRED_REWOUND ||
         error == EMUNGE_CRED_REPLAYED;
}

using Freed = std::unique_ptr<void, decltype(&std::free)>;

}  // namespace

std::optional<Munge> Munge::Find() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  return Munge(library);
}

Result<std::string> Munge::Wrap(std::string_view text, const std::string& socket,
                                uid_t reader) const {
  Result<Way> way = Way::Make(library_, socket);
  if (!way.ok()) return way.status();
  SONDE_RETURN_IF_ERROR(way->Set(MUNGE_OPT_UID_RESTRICTION, reader));
  const auto encode = Named<decltype(munge_encode)>(library_, "munge_encode");
  char* made = nullptr;
  const munge_err_t error =
      encode == nullptr ? EMUNGE_SNAFU
                        : encode(&made, way->get(), text.data(), static_cast<int>(text.size()));
  const Freed owner(made, &std::free);
  if (error != EMUNGE_SUCCESS || made == nullptr) return way->Failure(error);
  return std::string(made);
}

Result<std::string> Munge::Open(const std::string& credential, const std::string& socket) const {
  const Result<Way> way = Way::Make(library_, socket);
  if (!way.ok()) return way.status();
  const auto decode = Named<decltype(munge_decode)>(library_, "munge_decode");
  void* text = nullptr;
  int size = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  const munge_err_t error = decode == nullptr
                                ? EMUNGE_SNAFU
                                : decode(credential.c_str(), way->get(), &text, &size, &uid, &gid);
  const Freed owner(text, &std::free);
  if (!IsGenuine(error) || text == nullptr || size < 0) return way->Failure(error);
  return std::string(static_cast<const char*>(text), static_cast<size_t>(size));
}

}  // namespace sonde::launch
