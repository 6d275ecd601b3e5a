#include "libclient/mpi/abi.h"

#include "libclient/mpi/real.h"

namespace sonde::mpi {

constinit Questions questions = {};
constinit FortranQuestions fortran_questions = {};
constinit int proc_null = -1;

namespace {

template <typename F>
void Find(F*& function, const char* symbol) {
  function = reinterpret_cast<F*>(FindNext(symbol));
}

}  // namespace

void FindQuestions() {
  Find(questions.type_size, "PMPI_Type_size_x");
  Find(questions.get_count, "PMPI_Get_count");
  Find(questions.get_count_large, "PMPI_Get_count_c");
  Find(questions.comm_size, "PMPI_Comm_size");
  Find(questions.comm_rank, "PMPI_Comm_rank");
  Find(questions.comm_test_inter, "PMPI_Comm_test_inter");
  FortranQuestions& fortran = fortran_questions;
  Find(fortran.type_size, "pmpi_type_size_");
  Find(fortran.get_count, "pmpi_get_count_");
  Find(fortran.comm_size, "pmpi_comm_size_");
  Find(fortran.comm_rank, "pmpi_comm_rank_");
  Find(fortran.comm_test_inter, "pmpi_comm_test_inter_");
  fortran.in_place = reinterpret_cast<Word>(FindAny("mpi_fortran_in_place_"));
  fortran.status_ignore = reinterpret_cast<Word>(FindAny("mpi_fortran_status_ignore_"));
  // Open MPI's own: MPI_PROC_NULL is -2 and MPI_ANY_SOURCE -1, with all others the reverse.
  proc_null = FindNext("ompi_mpi_comm_world") != nullptr ? -2 : -1;
}

}  // namespace sonde::mpi
