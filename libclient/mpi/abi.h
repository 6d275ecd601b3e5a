// How the arguments of an MPI call are read and passed on without any mpi.h.
//
// Every argument is a Word, a register or a slot of the stack as it came, and is passed on whole.
// On x86-64 (System V) and AArch64 (AAPCS64, Linux) each integer or pointer argument takes one such
// place of 64 bits, whatever its size, the first 6 or 8 of them in registers and the others on the
// stack; for an int the upper half is not defined and is not read. So handles may be ints (MPICH)
// or pointers (Open MPI), and this code need not know which. It does not work where an argument
// takes two places (32 bits) or less than one (Apple's AArch64). No function of MPI takes a
// structure or a floating-point number by value.
//
// Questions about an argument go to the library: PMPI_Type_size_x and the like get the handle as it
// came. Fortran passes everything by reference; calls of the library's Fortran entry points get
// their sizes from pmpi_type_size_ and the like.
//
// Thread safety: any thread.
#pragma once

#include <stdint.h>

namespace sonde::mpi {

using Word = uintptr_t;
static_assert(sizeof(Word) == 8);

// The library's functions that tell about handles; nullptr for one that it lacks.
struct Questions {
  int (*type_size)(Word type, int64_t* size);
  int (*get_count)(Word status, Word type, int* count);
  int (*get_count_large)(Word status, Word type, int64_t* count);
  int (*comm_size)(Word comm, int* size);
  int (*comm_rank)(Word comm, int* rank);
  int (*comm_test_inter)(Word comm, int* flag);
  int (*comm_group)(Word comm, Word* group);
  int (*group_free)(Word* group);
  int (*translate_ranks)(Word group, int count, const int* ranks, Word other, int* theirs);
  Word (*comm_f2c)(int comm);
};
struct FortranQuestions {
  void (*type_size)(Word type, int* size, int* error);
  void (*get_count)(Word status, Word type, int* count, int* error);
  void (*comm_size)(Word comm, int* size, int* error);
  void (*comm_rank)(Word comm, int* rank, int* error);
  void (*comm_test_inter)(Word comm, int* flag, int* error);
  Word in_place;       // addresses that stand for MPI_IN_PLACE
  Word status_ignore;  // and MPI_STATUS_IGNORE
};
// Filled before the first call is recorded.
extern Questions questions;
extern FortranQuestions fortran_questions;
// MPI_PROC_NULL of the library: a rank to or from which nothing is sent.
extern int proc_null;
// Its MPI_COMM_WORLD; 0: not known.
extern Word world;
void FindQuestions();

struct CAbi {
  static int Int(Word argument) { return static_cast<int>(argument); }
  static int64_t Count(Word argument) { return static_cast<int>(argument); }
  static int64_t CountAt(Word counts, int i) { return reinterpret_cast<const int*>(counts)[i]; }
  // MPICH, MVAPICH, Intel and Cray MPI: -1; Open MPI and the ABI of MPI 5: 1.
  static bool InPlace(Word buffer) { return buffer == 1 || buffer == ~Word{0}; }
  // No library has a status at the addresses 0 and 1.
  static bool StatusIgnored(Word status) { return status <= 1; }
  static int64_t TypeSize(Word type) {
    int64_t size = 0;
    if (questions.type_size == nullptr || questions.type_size(type, &size) != 0) return 0;
    return size < 0 ? 0 : size;
  }
  static int64_t GetCount(Word status, Word type) {
    int count = 0;
    if (questions.get_count == nullptr || questions.get_count(status, type, &count) != 0) return 0;
    return count < 0 ? 0 : count;
  }
  static int Ask(int (*question)(Word, int*), Word comm) {
    int answer = 0;
    return question == nullptr || question(comm, &answer) != 0 ? 0 : answer;
  }
  static int CommSize(Word comm) { return Ask(questions.comm_size, comm); }
  static int CommRank(Word comm) { return Ask(questions.comm_rank, comm); }
  static bool BetweenGroups(Word comm) { return Ask(questions.comm_test_inter, comm) != 0; }
  // As C has it; 0: not known.
  static Word Comm(Word argument) { return argument; }
};

// The functions of MPI 4 whose names end in _c: counts are MPI_Count.
struct LargeAbi : CAbi {
  static int64_t Count(Word argument) { return static_cast<int64_t>(argument); }
  static int64_t CountAt(Word counts, int i) { return reinterpret_cast<const int64_t*>(counts)[i]; }
  static int64_t GetCount(Word status, Word type) {
    int64_t count = 0;
    if (questions.get_count_large == nullptr ||
        questions.get_count_large(status, type, &count) != 0) {
      return 0;
    }
    return count < 0 ? 0 : count;
  }
};

struct FortranAbi {
  static int Int(Word argument) { return *reinterpret_cast<const int*>(argument); }
  static int64_t Count(Word argument) { return Int(argument); }
  static int64_t CountAt(Word counts, int i) { return reinterpret_cast<const int*>(counts)[i]; }
  static bool InPlace(Word buffer) {
    return fortran_questions.in_place != 0 && buffer == fortran_questions.in_place;
  }
  static bool StatusIgnored(Word status) {
    return fortran_questions.status_ignore != 0 && status == fortran_questions.status_ignore;
  }
  static int Ask(void (*question)(Word, int*, int*), Word argument) {
    int answer = 0, error = 0;
    if (question != nullptr) question(argument, &answer, &error);
    return question == nullptr || error != 0 ? 0 : answer;
  }
  static int64_t TypeSize(Word type) {
    const int size = Ask(fortran_questions.type_size, type);
    return size < 0 ? 0 : size;
  }
  static int64_t GetCount(Word status, Word type) {
    int count = 0, error = 0;
    if (fortran_questions.get_count == nullptr) return 0;
    fortran_questions.get_count(status, type, &count, &error);
    return error != 0 || count < 0 ? 0 : count;
  }
  static int CommSize(Word comm) { return Ask(fortran_questions.comm_size, comm); }
  static int CommRank(Word comm) { return Ask(fortran_questions.comm_rank, comm); }
  static bool BetweenGroups(Word comm) { return Ask(fortran_questions.comm_test_inter, comm) != 0; }
  static Word Comm(Word argument) {
    return questions.comm_f2c == nullptr ? 0 : questions.comm_f2c(Int(argument));
  }
};

}  // namespace sonde::mpi
