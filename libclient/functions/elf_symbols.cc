#include "libclient/functions/elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sonde::functions {
namespace {

// More than the largest programs have: what a damaged file says costs no more.
constexpr uint64_t kMostSections = 1u << 20;
constexpr uint64_t kMostSymbols = 16u << 20;

// An entry of the index, so that a smaller one is better among those of one address: the distance
// of the address, the table, how far others see it, and where its name begins among the table's
// strings.
constexpr int kAddressShift = 32;
constexpr int kTableShift = 31;
constexpr int kHiddenShift = 29;  // 0: global, 1: weak, 2: local
constexpr uint64_t kNameMask = (uint64_t{1} << kHiddenShift) - 1;

bool IsFunction(const Elf64_Sym& symbol) {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return type == STT_FUNC || type == STT_GNU_IFUNC;
}

uint64_t Hidden(const Elf64_Sym& symbol) {
  const unsigned binding = ELF64_ST_BIND(symbol.st_info);
  return binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 1 : 2;
}

bool IsKnown(const Elf64_Ehdr& header) {
  return memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB;
}

template <typename T>
bool ReadOne(int fd, uint64_t offset, T* out) {
  return ReadAt(fd, offset, out, sizeof(*out)) == sizeof(*out);
}

// What is read at once; too large for the stack of a signal handler.
struct Chunk {
  Elf64_Sym symbols[2048];
  Elf64_Shdr sections[64];
};
constinit Chunk chunk = {};

// The file's section headers.
struct Sections {
  uint64_t offset = 0;
  uint64_t count = 0;

  bool Find(int fd) {
    Elf64_Ehdr header;
    if (!ReadOne(fd, 0, &header) || !IsKnown(header) || header.e_shentsize != sizeof(Elf64_Shdr)) {
      return false;
    }
    offset = header.e_shoff;
    count = header.e_shnum;
    Elf64_Shdr first;
    // A number that does not fit is in the first section.
    if (count == 0 && offset != 0 && ReadOne(fd, offset, &first)) count = first.sh_size;
    if (count > kMostSections) count = kMostSections;
    return count > 0;
  }
  bool Get(int fd, uint64_t index, Elf64_Shdr* section) const {
    return index < count && ReadOne(fd, offset + index * sizeof(Elf64_Shdr), section);
  }
  // The first one of each type: a second would only make a search longer.
  void First(int fd, const uint32_t (&types)[2], Elf64_Shdr (&found)[2]) const {
    constexpr uint64_t kAtOnce = sizeof(chunk.sections) / sizeof(chunk.sections[0]);
    for (uint64_t i = 0; i < count; i += kAtOnce) {
      const uint64_t wanted = count - i < kAtOnce ? count - i : kAtOnce;
      const size_t got =
          ReadAt(fd, offset + i * sizeof(Elf64_Shdr), chunk.sections, wanted * sizeof(Elf64_Shdr)) /
          sizeof(Elf64_Shdr);
      for (size_t k = 0; k < got; ++k) {
        for (size_t type = 0; type < 2; ++type) {
          const Elf64_Shdr& section = chunk.sections[k];
          if (section.sh_type == types[type] && found[type].sh_type != types[type]) {
            found[type] = section;
          }
        }
      }
      if (got < wanted) return;
    }
  }
};

// Where the first segment that is loaded lies: all functions are behind it.
uint64_t LowestAddress(int fd) {
  constexpr uint64_t kMostSegments = 64;
  Elf64_Ehdr header;
  if (!ReadOne(fd, 0, &header) || header.e_phentsize != sizeof(Elf64_Phdr)) return 0;
  for (uint64_t i = 0; i < header.e_phnum && i < kMostSegments; ++i) {
    Elf64_Phdr segment;
    if (!ReadOne(fd, header.e_phoff + i * sizeof(segment), &segment)) return 0;
    if (segment.p_type == PT_LOAD) return segment.p_vaddr;
  }
  return 0;
}

// Whether these are a constructor's, or a destructor's, two names: that of a base (C2), and that of
// an object by itself (C1).
bool IsBaseOf(const char* base, const char* itself, size_t size) {
  size_t i = 0;
  while (i < size && base[i] == itself[i]) ++i;
  return i > 0 && i < size && base[i] == '2' && itself[i] == '1' &&
         (base[i - 1] == 'C' || base[i - 1] == 'D' || base[i - 1] == 'I') &&
         memcmp(base + i + 1, itself + i + 1, size - i - 1) == 0;
}

void* Map(size_t size) {
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Byte by byte from the lowest one on, in a time that no file can make long. Of numbers that share
// a byte its round is left out.
bool Sort(uint64_t* numbers, size_t count) {
  if (count < 2) return true;
  const size_t size = count * sizeof(*numbers);
  auto* const other = static_cast<uint64_t*>(Map(size));
  if (other == nullptr) return false;
  uint64_t* from = numbers;
  uint64_t* to = other;
  for (int shift = 0; shift < 64; shift += 8) {
    uint32_t places[256] = {};
    for (size_t i = 0; i < count; ++i) ++places[from[i] >> shift & 0xff];
    if (places[from[0] >> shift & 0xff] == count) continue;
    uint32_t before = 0;
    for (uint32_t& place : places) {
      const uint32_t here = place;
      place = before;
      before += here;
    }
    for (size_t i = 0; i < count; ++i) to[places[from[i] >> shift & 0xff]++] = from[i];
    uint64_t* const sorted = to;
    to = from;
    from = sorted;
  }
  if (from != numbers) memcpy(numbers, from, size);
  munmap(other, size);
  return true;
}

}  // namespace

size_t ReadAt(int fd, uint64_t offset, void* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    const long got =
        syscall(SYS_pread64, fd, static_cast<char*>(out) + done, size - done, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

bool FindAddress(std::string_view beginning, uint64_t offset, uint64_t* address) {
  Elf64_Ehdr header;
  if (beginning.size() < sizeof(header)) return false;
  memcpy(&header, beginning.data(), sizeof(header));
  if (!IsKnown(header) || header.e_phentsize != sizeof(Elf64_Phdr)) return false;
  if (header.e_phoff > beginning.size()) return false;
  const uint64_t fit = (beginning.size() - header.e_phoff) / sizeof(Elf64_Phdr);
  for (uint64_t i = 0; i < header.e_phnum && i < fit; ++i) {
    Elf64_Phdr segment;
    memcpy(&segment, beginning.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    if (offset < segment.p_offset || offset - segment.p_offset >= segment.p_filesz) continue;
    *address = segment.p_vaddr + (offset - segment.p_offset);
    return true;
  }
  return false;
}

void FunctionIndex::Clear() {
  if (entries_ != nullptr) munmap(entries_, capacity_ * sizeof(*entries_));
  entries_ = nullptr;
  capacity_ = count_ = 0;
}

bool FunctionIndex::Read(int fd) {
  Clear();
  Sections sections;
  if (!sections.Find(fd)) return true;
  constexpr uint32_t kTypes[kTables] = {SHT_SYMTAB, SHT_DYNSYM};
  Elf64_Shdr found[kTables] = {};
  sections.First(fd, kTypes, found);
  uint64_t all = 0;
  for (const Table table : {kSymtab, kDynsym}) {
    symbols_[table] = {};
    strings_[table] = {};
    Elf64_Shdr strings;
    if (found[table].sh_type != kTypes[table] || found[table].sh_entsize != sizeof(Elf64_Sym) ||
        !sections.Get(fd, found[table].sh_link, &strings)) {
      continue;
    }
    const uint64_t count = found[table].sh_size / sizeof(Elf64_Sym);
    symbols_[table] = {found[table].sh_offset, count < kMostSymbols ? count : kMostSymbols};
    strings_[table] = {strings.sh_offset, strings.sh_size};
    all += symbols_[table].count;
  }
  if (all == 0) return true;
  // Memory that is not touched does not exist.
  const size_t capacity = all < kMaxIndexed ? all : kMaxIndexed;
  entries_ = static_cast<uint64_t*>(Map(capacity * sizeof(*entries_)));
  if (entries_ == nullptr) return false;
  capacity_ = capacity;
  base_ = LowestAddress(fd);
  for (const Table table : {kSymtab, kDynsym}) ReadTable(fd, table);
  if (Sort(entries_, count_)) return true;
  Clear();
  return false;
}

// Also symbols that are defined elsewhere: a program that is loaded at a fixed address has one for
// its own entry point of a library's function, which is that function's address then.
void FunctionIndex::ReadTable(int fd, Table table) {
  constexpr uint64_t kAtOnce = sizeof(chunk.symbols) / sizeof(chunk.symbols[0]);
  const Range& range = symbols_[table];
  for (uint64_t i = 0; i < range.count && count_ < capacity_;) {
    const uint64_t wanted = range.count - i < kAtOnce ? range.count - i : kAtOnce;
    const size_t got = ReadAt(fd, range.offset + i * sizeof(Elf64_Sym), chunk.symbols,
                              wanted * sizeof(Elf64_Sym)) /
                       sizeof(Elf64_Sym);
    for (size_t k = 0; k < got && count_ < capacity_; ++k) {
      const Elf64_Sym& symbol = chunk.symbols[k];
      const uint64_t distance = symbol.st_value - base_;
      if (!IsFunction(symbol) || symbol.st_value == 0 || distance > UINT32_MAX ||
          symbol.st_name > kNameMask) {
        continue;
      }
      entries_[count_++] = distance << kAddressShift | static_cast<uint64_t>(table) << kTableShift |
                           Hidden(symbol) << kHiddenShift | symbol.st_name;
    }
    if (got < wanted) return;
    i += wanted;
  }
}

size_t FunctionIndex::ReadName(int fd, uint64_t entry, char* room) const {
  const Strings& strings = strings_[entry >> kTableShift & 1];
  const uint64_t at = entry & kNameMask;
  if (at >= strings.size) return 0;
  const uint64_t left = strings.size - at;
  const size_t got =
      ReadAt(fd, strings.offset + at, room, left < kLongestName ? left : kLongestName);
  const void* const end = memchr(room, '\0', got);
  return end == nullptr ? 0 : static_cast<size_t>(static_cast<const char*>(end) - room);
}

std::string_view FunctionIndex::Find(int fd, uint64_t address, char (&room)[kLongestName]) const {
  static constinit char another[kLongestName] = {};
  constexpr int kMostNames = 32;
  const uint64_t distance = address - base_;
  if (address == 0 || distance > UINT32_MAX) return {};
  size_t low = 0, high = count_;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (entries_[middle] >> kAddressShift < distance) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  size_t size = 0;
  uint64_t hidden = 0;
  for (int names = 0; low < count_ && names < kMostNames; ++low, ++names) {
    const uint64_t entry = entries_[low];
    if (entry >> kAddressShift != distance) break;
    const size_t length = ReadName(fd, entry, another);
    if (length == 0) continue;
    const bool equal = size == length;
    const bool seen = entry >> kHiddenShift == hidden;
    const bool first = length < size || (equal && memcmp(another, room, length) < 0);
    const bool better = size == 0 || (equal && IsBaseOf(another, room, length)) ||
                        (seen && first && !(equal && IsBaseOf(room, another, length)));
    if (!better) continue;
    if (size == 0) hidden = entry >> kHiddenShift;
    memcpy(room, another, length);
    size = length;
  }
  return {room, size};
}

}  // namespace sonde::functions
