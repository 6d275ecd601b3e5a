! What mpi_work.c does, in part and in Fortran: with mpif.h, `use mpi` or `use mpi_f08`, as WITH_MPIF,
! WITH_MPI or WITH_F08 says. test_mpi.py knows what it sends and receives. Runs on two ranks.
program mpi_work
#ifdef WITH_MPI
  use mpi
  implicit none
#endif
#ifdef WITH_F08
  use mpi_f08
  implicit none
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status
#else
#ifdef WITH_MPIF
  implicit none
  include 'mpif.h'
#endif
  integer :: requests(2), status(MPI_STATUS_SIZE)
#endif
  integer :: rank, ranks, other, i, ierr, provided
  double precision :: out(1000), in(1000)

  call mpi_init_thread(MPI_THREAD_SERIALIZED, provided, ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  other = 1 - rank
  out = rank
  ! p2p: 20 calls of 80 bytes sent, 20 of 8000 posted; wait: 20
  do i = 1, 20
    call mpi_irecv(in, 1000, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(1), ierr)
    call mpi_isend(out, 10, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(2), ierr)
    call mpi_waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  end do
  ! p2p: 2 calls of a rank, 400 bytes one way each time; more room than what comes
  if (rank == 0) then
    call mpi_send(out, 50, MPI_DOUBLE_PRECISION, other, 2, MPI_COMM_WORLD, ierr)
    call mpi_send(out, 50, MPI_DOUBLE_PRECISION, other, 2, MPI_COMM_WORLD, ierr)
  else
    call mpi_recv(in, 1000, MPI_DOUBLE_PRECISION, other, 2, MPI_COMM_WORLD, status, ierr)
    call mpi_recv(in, 1000, MPI_DOUBLE_PRECISION, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  end if
  ! p2p: 24 bytes each way
  call mpi_sendrecv(out, 3, MPI_DOUBLE_PRECISION, other, 3, in, 100, MPI_DOUBLE_PRECISION, other, 3, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  ! collective: 6 calls
  call mpi_barrier(MPI_COMM_WORLD, ierr)
  call mpi_bcast(out, 100, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
  call mpi_allreduce(out, in, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call mpi_allreduce(MPI_IN_PLACE, in, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call mpi_gather(out, 4, MPI_DOUBLE_PRECISION, in, 4, MPI_DOUBLE_PRECISION, 1, MPI_COMM_WORLD, ierr)
  call mpi_alltoall(out, 1, MPI_DOUBLE_PRECISION, in, 1, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierr)
#ifdef WITH_F08
  ! Without the error code, which is optional here. collective: 1
  call mpi_barrier(MPI_COMM_WORLD)
#endif
  call mpi_finalize(ierr)
end program
