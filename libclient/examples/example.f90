! The metrics of an application in Fortran, in as few lines as it takes: pi by Leibniz's series.
!
!   gfortran -O2 example.f90 -o example $(pkg-config --cflags --libs sonde-fortran)
!   srun --telemetry-level=1 ./example [BLOCKS]
!
! It runs just the same without telemetry: then every update does nothing.
program example
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use sonde
  implicit none

  integer(int64), parameter :: BLOCK_SIZE = 100000
  type(sonde_metric_t) :: error, correction, terms(0:1)
  integer(int64) :: blocks, block, n
  real(real64) :: total, before
  character(len=32) :: argument

  blocks = 5000
  if (command_argument_count() > 0) then
    call get_command_argument(1, argument)
    read (argument, *) blocks
  end if

  ! A gauge is what is true now; a counter only grows; a histogram is how values are distributed.
  ! Tags tell apart what is counted under one name. The rank is a tag of every series already.
  error = sonde_gauge("example_error", unit="1", help="Distance from pi")
  terms(0) = sonde_counter("example_terms_total", unit="1", tags=[sonde_tag_t("kind", "positive")])
  terms(1) = sonde_counter("example_terms_total", unit="1", tags=[sonde_tag_t("kind", "negative")])
  correction = sonde_histogram("example_correction", help="What a block adds to the sum")

  call sonde_phase_begin("sum")  ! a band on every plot
  total = 0
  n = 0
  do block = 1, blocks
    before = total
    do while (n < block * BLOCK_SIZE)
      total = total + merge(4.0_real64, -4.0_real64, mod(n, 2_int64) == 0) / real(2 * n + 1, real64)
      call sonde_add(terms(mod(n, 2_int64)))
      n = n + 1
    end do
    call sonde_set(error, abs(total - acos(-1.0_real64)))
    call sonde_observe(correction, abs(total - before))
  end do
  call sonde_phase_end("sum")
  call sonde_annotate("the sum is there")

  call sonde_figure("example_pi", total, "1")  ! what the run is judged by
  print "(a, f11.9)", "pi is about ", total
end program
