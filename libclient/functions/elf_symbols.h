// The names of functions in an ELF file. What the file says is not trusted: it may be cut, damaged,
// or none at all. It is read by pread and never mapped, because a file that is cut while it is
// mapped ends the process that reads there.
//
// Files are of 64 bits and little-endian, as the process is.
//
// Thread safety: one caller at a time; signal handlers too. Memory comes from mmap alone.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string_view>

namespace sonde::functions {

// Where the file's symbols place what lies at `offset` of the file, in a segment with code. False
// if no such segment has it. `beginning` of the file, with its program headers.
bool FindAddress(std::string_view beginning, uint64_t offset, uint64_t* address);

// Reads what the file has at `offset`; the number of bytes, fewer at its end.
size_t ReadAt(int fd, uint64_t offset, void* out, size_t size);

// The functions of one file by their addresses: its tables of symbols are read once, and a look-up
// is a binary search that reads a name or two. Owns memory until Clear: 8 bytes for each function,
// for kMaxIndexed at most; further ones have no names.
class FunctionIndex {
 public:
  static constexpr size_t kMaxIndexed = 2u << 20;
  static constexpr size_t kLongestName = 4096;

  constexpr FunctionIndex() = default;
  FunctionIndex(const FunctionIndex&) = delete;
  FunctionIndex& operator=(const FunctionIndex&) = delete;

  // Replaces what it has; false without memory. A file without functions has an empty index.
  bool Read(int fd);
  void Clear();
  size_t size() const { return count_; }

  // The name of the function that begins at this address, from .symtab, else from .dynsym; of
  // several names one that other files can see, then the shortest, then the first by the alphabet;
  // but of a constructor's always C2, and of a destructor's D2: linkers hide either, and Clang
  // leaves out the other. The name lies in `room`; "" if there is none, or if it does not fit.
  // `fd`: the same file.
  std::string_view Find(int fd, uint64_t address, char (&room)[kLongestName]) const;

 private:
  struct Strings {
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  enum Table : unsigned { kSymtab, kDynsym, kTables };

  void ReadTable(int fd, Table table);
  size_t ReadName(int fd, uint64_t entry, char* room) const;

  struct Range {
    uint64_t offset = 0;
    uint64_t count = 0;
  };
  uint64_t base_ = 0;            // addresses are kept as distances from it
  uint64_t* entries_ = nullptr;  // sorted; elf_symbols.cc has their parts
  size_t capacity_ = 0;
  size_t count_ = 0;
  Range symbols_[kTables] = {};
  Strings strings_[kTables] = {};
};

}  // namespace sonde::functions
