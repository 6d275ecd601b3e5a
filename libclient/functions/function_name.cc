#include "libclient/functions/function_name.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libclient/functions/elf_symbols.h"
#include "libclient/functions/mappings.h"

namespace sonde::functions {
namespace {

// Too large for the stack of a signal handler.
struct Scratch {
  Room room;
  char symbol[FunctionIndex::kLongestName];
};
constinit Scratch scratch = {};

// Where a function lies.
struct Place {
  uint64_t device;
  uint64_t inode;
  std::string_view beginning;  // of its file, as it was loaded
  std::string_view file;       // the last part of its path
  uint64_t offset;             // in the file
};

// The program itself. Unlike a library it stays where it is, so the mapping of its functions that
// was found last is remembered.
struct Program {
  bool known = false;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  std::string_view beginning;
  char file[256] = {};
  size_t file_size = 0;

  Place At(uintptr_t address) const {
    return {device, inode, beginning, {file, file_size}, address - begin + offset};
  }
};
constinit Program program;

void FindProgram() {
  Mapping mapping;
  std::string_view beginning;
  program.known = true;
  if (!FindMapping(getauxval(AT_PHDR), &scratch.room, &mapping, &beginning)) return;
  program.device = mapping.device;
  program.inode = mapping.inode;
}

void Remember(const Mapping& mapping, std::string_view beginning, std::string_view file) {
  program.begin = mapping.begin;
  program.end = mapping.end;
  program.offset = mapping.offset;
  program.beginning = beginning;
  program.file_size = file.size() < sizeof(program.file) ? file.size() : sizeof(program.file);
  memcpy(program.file, file.data(), program.file_size);
}

// The last part of a path; a file that was replaced since has a word behind it.
std::string_view BaseName(const char* path, size_t size) {
  constexpr std::string_view kGone = " (deleted)";
  std::string_view name(path, size);
  if (name.ends_with(kGone)) name.remove_suffix(kGone.size());
  const size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  return name;
}

// An ELF file, if it is the one that was loaded.
class File {
 public:
  // Not by open, which may be interposed. Not by name and number of the filesystem: a path may lead
  // elsewhere by now, and some filesystems give two numbers. What is loaded begins with the same
  // bytes: its header, its segments, and as a rule the number of its build.
  File(const char* path, std::string_view beginning) {
    constexpr size_t kCompared = 1024;
    if (beginning.empty()) return;
    fd_ = static_cast<int>(
        syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (fd_ < 0) return;
    char now[kCompared];
    struct stat info;
    const size_t size = beginning.size() < kCompared ? beginning.size() : kCompared;
    good_ = syscall(SYS_fstat, fd_, &info) == 0 && S_ISREG(info.st_mode) &&
            ReadAt(fd_, 0, now, size) == size && memcmp(now, beginning.data(), size) == 0;
    if (good_) {
      version_ = {static_cast<uint64_t>(info.st_size), info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
    }
  }
  ~File() {
    if (fd_ >= 0) syscall(SYS_close, fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  struct Version {
    uint64_t size = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    bool operator==(const Version&) const = default;
  };
  bool good() const { return good_; }
  int fd() const { return fd_; }
  const Version& version() const { return version_; }

 private:
  int fd_ = -1;
  bool good_ = false;
  Version version_;
};

// The indexes of the files that were asked for last; the first one is the program's.
struct Indexed {
  uint64_t device = 0;
  uint64_t inode = 0;
  File::Version version;
  FunctionIndex index;
};
constexpr size_t kIndexes = 8;
constinit Indexed indexes[kIndexes];
constinit size_t next_index = 1;

const FunctionIndex& IndexOf(const Place& place, const File& file, bool of_program) {
  Indexed* found = nullptr;
  for (Indexed& one : indexes) {
    if (one.inode == place.inode && one.device == place.device) found = &one;
  }
  if (found == nullptr) {
    found = of_program ? &indexes[0] : &indexes[next_index];
    if (!of_program) next_index = next_index + 1 < kIndexes ? next_index + 1 : 1;
  } else if (found->version == file.version()) {
    return found->index;
  }
  found->device = place.device;
  found->inode = place.inode;
  found->version = file.version();
  found->index.Read(file.fd());
  return found->index;
}

void PutName(const Place& place, const File& file, bool of_program, FunctionName* name) {
  uint64_t address = place.offset;
  std::string_view symbol;
  if (FindAddress(place.beginning, place.offset, &address) && file.good()) {
    symbol = IndexOf(place, file, of_program).Find(file.fd(), address, scratch.symbol);
  }
  if (!symbol.empty()) return PutSymbol(symbol, &name->function);
  PutPlace(place.file, address, name->function.pieces[0]);
  name->function.count = 1;
}

// This opens the file that runs, also if it was removed or another one has its name.
constexpr char kProgram[] = "/proc/self/exe";

}  // namespace

void FindFunctionName(uintptr_t address, FunctionName* name) {
  if (!program.known) FindProgram();
  name->object[0] = '\0';
  if (address >= program.begin && address < program.end) {
    const Place place = program.At(address);
    const File file(kProgram, place.beginning);
    return PutName(place, file, true, name);
  }
  Mapping mapping;
  std::string_view beginning;
  if (!FindMapping(address, &scratch.room, &mapping, &beginning) || mapping.inode == 0) {
    return PutSymbol("(unknown)", &name->function);
  }
  const Place place = {mapping.device, mapping.inode, beginning,
                       BaseName(mapping.path, mapping.path_size),
                       address - mapping.begin + mapping.offset};
  const bool of_program = mapping.inode == program.inode && mapping.device == program.device;
  if (of_program) {
    const File file(kProgram, beginning);
    if (file.good()) Remember(mapping, beginning, place.file);
    // Else the dynamic linker was started, with the program as its argument.
    if (file.good()) return PutName(place, file, true, name);
  } else {
    PutTagText(place.file, name->object);
  }
  char* const end = scratch.room.line + (mapping.path - scratch.room.line) + mapping.path_size;
  const bool whole = end < scratch.room.line + sizeof(scratch.room.line);
  if (whole) *end = '\0';
  const File file(whole ? mapping.path : "", beginning);
  PutName(place, file, of_program, name);
}

}  // namespace sonde::functions
