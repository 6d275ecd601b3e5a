#include "launcher/site/munge.h"

#include <dlfcn.h>
#include <munge.h>

#include <cstdlib>
#include <memory>

namespace sonde::launch {

// The functions of the library, as its header has them.
struct Munge::Functions {
  decltype(&munge_ctx_create) make = nullptr;
  decltype(&munge_ctx_destroy) destroy = nullptr;
  decltype(&munge_ctx_set) set = nullptr;
  decltype(&munge_encode) encode = nullptr;
  decltype(&munge_decode) decode = nullptr;
  decltype(&munge_strerror) words = nullptr;
};

namespace {

constexpr const char* kLibrary = "libmunge.so.2";

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

// They were opened before, or at a time that munge finds wrong; they are as they were made.
bool IsGenuine(munge_err_t error) {
  return error == EMUNGE_SUCCESS || error == EMUNGE_CRED_EXPIRED || error == EMUNGE_CRED_REWOUND ||
         error == EMUNGE_CRED_REPLAYED;
}

using Freed = std::unique_ptr<void, decltype(&std::free)>;
using Context = std::unique_ptr<munge_ctx, decltype(&munge_ctx_destroy)>;

}  // namespace

std::optional<Munge> Munge::Find() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  Functions found;
  const bool all = launch::Find(library, "munge_ctx_create", found.make) &&
                   launch::Find(library, "munge_ctx_destroy", found.destroy) &&
                   launch::Find(library, "munge_ctx_set", found.set) &&
                   launch::Find(library, "munge_encode", found.encode) &&
                   launch::Find(library, "munge_decode", found.decode) &&
                   launch::Find(library, "munge_strerror", found.words);
  if (!all) return std::nullopt;
  return Munge(std::make_shared<const Functions>(found));
}

Status Munge::Failure(int error) const {
  return {Code::kUnavailable,
          std::string("munge: ") + functions_->words(static_cast<munge_err_t>(error))};
}

Result<std::string> Munge::Wrap(std::string_view text, const std::string& socket,
                                uid_t reader) const {
  const Context context(functions_->make(), functions_->destroy);
  if (!context) return Failure(EMUNGE_NO_MEMORY);
  munge_err_t error = functions_->set(context.get(), MUNGE_OPT_UID_RESTRICTION, reader);
  if (error == EMUNGE_SUCCESS && !socket.empty()) {
    error = functions_->set(context.get(), MUNGE_OPT_SOCKET, socket.c_str());
  }
  if (error != EMUNGE_SUCCESS) return Failure(error);
  char* made = nullptr;
  error = functions_->encode(&made, context.get(), text.data(), static_cast<int>(text.size()));
  const Freed owner(made, &std::free);
  if (error != EMUNGE_SUCCESS) return Failure(error);
  return std::string(made);
}

Result<std::string> Munge::Open(const std::string& credential, const std::string& socket) const {
  const Context context(functions_->make(), functions_->destroy);
  if (!context) return Failure(EMUNGE_NO_MEMORY);
  if (!socket.empty()) {
    const auto set = functions_->set(context.get(), MUNGE_OPT_SOCKET, socket.c_str());
    if (set != EMUNGE_SUCCESS) return Failure(set);
  }
  void* text = nullptr;
  int size = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  const munge_err_t error =
      functions_->decode(credential.c_str(), context.get(), &text, &size, &uid, &gid);
  const Freed owner(text, &std::free);
  if (!IsGenuine(error) || text == nullptr) return Failure(error);
  return std::string(static_cast<const char*>(text), static_cast<size_t>(size));
}

}  // namespace sonde::launch
