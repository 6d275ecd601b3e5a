#include "libclient/mpi/real.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

namespace sonde::mpi {
namespace {

struct Search {
  int index;  // of the object whose name is wanted
  char name[1024];
};

int CopyName(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (search->index-- > 0) return 0;
  const size_t size = strlen(info->dlpi_name) + 1;
  search->name[0] = '\0';
  if (size <= sizeof(search->name)) memcpy(search->name, info->dlpi_name, size);
  return 1;
}

// The MPI library, if it is outside the program's scope: the first object with MPI's own names.
// Objects that come and go meanwhile may be missed; an MPI library does not.
void* PrivateLibrary() {
  Search search;
  for (int i = 0;; ++i) {
    search.index = i;
    if (dl_iterate_phdr(&CopyName, &search) == 0) return nullptr;
    if (search.name[0] == '\0') continue;
    void* handle = dlopen(search.name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    if (dlsym(handle, "PMPI_Init") != nullptr) return handle;  // and it stays loaded
    dlclose(handle);
  }
}

}  // namespace

void* FindNext(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found != nullptr) return found;
  static void* library = nullptr;
  void* handle = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
  if (handle == nullptr) {
    handle = PrivateLibrary();
    if (handle == nullptr) return nullptr;
    __atomic_store_n(&library, handle, __ATOMIC_RELEASE);
  }
  return dlsym(handle, symbol);
}

void* FindAny(const char* symbol) {
  void* found = dlsym(RTLD_DEFAULT, symbol);
  return found != nullptr ? found : FindNext(symbol);
}

}  // namespace sonde::mpi
