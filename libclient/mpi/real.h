// Finds the functions of the MPI library that a program uses.
//
// Found by name when they are needed, so that one build serves every MPI and a program without one.
//
// Thread safety: any thread.
#pragma once

namespace sonde::mpi {

// The next definition of `symbol` after ours: that of the MPI library, or of another tool between
// it and us. Also found if the library was loaded privately, as Python's modules do. nullptr if
// there is none.
void* FindNext(const char* symbol);

// The first definition of `symbol` in the program, nullptr if there is none.
void* FindAny(const char* symbol);

}  // namespace sonde::mpi
