// Which file a piece of code was loaded from, by /proc/self/maps.
//
// The dynamic linker's own functions for this take its lock, which another thread may hold while it
// waits for the caller's: a library's constructor that waits for a thread it has started.
//
// Thread safety: any thread, signal handlers too; by system calls alone. FindMapping needs a Room
// of its own for each call.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string_view>

namespace sonde::functions {

// One line of maps.
struct Mapping {
  uint64_t begin;
  uint64_t end;
  uint64_t offset;  // in the file
  uint64_t device;
  uint64_t inode;  // 0: there is no file
  bool readable;
  const char* path;  // as the line has it; may be cut
  size_t path_size;
};

// False if the text is no line of maps.
bool ParseMapping(const char* line, size_t size, Mapping* mapping);

// What FindMapping reads into.
struct Room {
  char buffer[4096];
  char line[4096 + 128];
};

// The mapping that has this address; its path lies in `room`. `beginning`: the beginning of the
// same file as it is mapped; empty if it is not, or cannot be read.
bool FindMapping(uintptr_t address, Room* room, Mapping* mapping, std::string_view* beginning);

}  // namespace sonde::functions
