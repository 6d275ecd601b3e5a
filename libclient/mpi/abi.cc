#include "libclient/mpi/abi.h"

#include <string.h>

#include "libclient/mpi/real.h"

namespace sonde::mpi {

constinit Questions questions = {};
constinit FortranQuestions fortran_questions = {};
constinit int proc_null = -1;
constinit Word world = 0;

namespace {

template <typename F>
void Find(F*& function, const char* symbol) {
  function = reinterpret_cast<F*>(FindNext(symbol));
}

// The same number in MPICH and all that keep to its ABI (Intel, Cray, MVAPICH). Whoever offers the
// ABI of MPI 5 as well may mean another one by it, and a wrong handle ends the program.
Word WorldOfMpich() {
  constexpr Word kMpich = 0x44000000;
  constexpr const char* kNames[] = {"MPICH", "Intel(R) MPI", "MVAPICH"};
  int (*version)(char* text, int* size);
  Find(version, "PMPI_Get_library_version");
  if (version == nullptr || FindNext("PMPI_Abi_get_version") != nullptr) return 0;
  static char text[16384];  // of no library more than 8192
  int size = 0;
  if (version(text, &size) != 0) return 0;
  text[sizeof(text) - 1] = '\0';
  for (const char* name : kNames) {
    if (strstr(text, name) != nullptr) return kMpich;
  }
  return 0;
}

}  // namespace

void FindQuestions() {
  Find(questions.type_size, "PMPI_Type_size_x");
  Find(questions.get_count, "PMPI_Get_count");
  Find(questions.get_count_large, "PMPI_Get_count_c");
  Find(questions.comm_size, "PMPI_Comm_size");
  Find(questions.comm_rank, "PMPI_Comm_rank");
  Find(questions.comm_test_inter, "PMPI_Comm_test_inter");
  Find(questions.comm_group, "PMPI_Comm_group");
  Find(questions.group_free, "PMPI_Group_free");
  Find(questions.translate_ranks, "PMPI_Group_translate_ranks");
  Find(questions.comm_f2c, "PMPI_Comm_f2c");
  FortranQuestions& fortran = fortran_questions;
  Find(fortran.type_size, "pmpi_type_size_");
  Find(fortran.get_count, "pmpi_get_count_");
  Find(fortran.comm_size, "pmpi_comm_size_");
  Find(fortran.comm_rank, "pmpi_comm_rank_");
  Find(fortran.comm_test_inter, "pmpi_comm_test_inter_");
  fortran.in_place = reinterpret_cast<Word>(FindAny("mpi_fortran_in_place_"));
  fortran.status_ignore = reinterpret_cast<Word>(FindAny("mpi_fortran_status_ignore_"));
  // Open MPI's own: MPI_PROC_NULL is -2 and MPI_ANY_SOURCE -1, with all others the reverse.
  // Its communicators are variables, of which a program may have the copy that counts.
  void* const open_mpi = FindAny("ompi_mpi_comm_world");
  proc_null = open_mpi != nullptr ? -2 : -1;
  world = open_mpi != nullptr ? reinterpret_cast<Word>(open_mpi) : WorldOfMpich();
}

}  // namespace sonde::mpi
