! What a user of the module sonde writes, as a program for test_fortran.py.
program application
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use sonde
  implicit none

  integer :: failures = 0

  if (command_argument_count() > 0) then
    call without_telemetry()
  else
    call metrics()
    call refused()
    call moments()
    call sonde_finalize()
  end if
  if (failures > 0) error stop 1

contains

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (good) return
    print "(3a)", what, ": ", sonde_error()
    failures = failures + 1
  end subroutine

  subroutine without_telemetry()
    type(sonde_metric_t) :: gauge, none
    integer :: status
    gauge = sonde_gauge("app_gauge")
    call expect(sonde_status() == SONDE_OFF, "no telemetry")
    call expect(.not. sonde_recorded(gauge), "no gauge")
    call sonde_set(gauge, 1.0)
    call sonde_set_at(gauge, 1.0_real64, 1_int64)
    call sonde_add(none)
    call sonde_observe(none, 1)
    call sonde_phase_begin("p", status)
    call expect(status == SONDE_OFF, "no phase")
    call sonde_annotate("x")
    call sonde_figure("x", 1)
  end subroutine

  subroutine metrics()
    type(sonde_metric_t) :: gauges(4), counter, histogram, timed
    character(len=20) :: number
    character(len=40) :: padded
    integer :: i
    integer(int64) :: now, rate
    ! Numbers are written at the right, texts at the left: blanks around both are left out.
    write (number, "(i20)") 3
    padded = "app_gauge"
    do i = 1, 4
      write (number, "(i20)") i
      gauges(i) = sonde_gauge(padded, "seconds", "A gauge", 1, [sonde_tag_t("part", number)])
    end do
    call expect(all(sonde_recorded(gauges)), "gauges")
    call sonde_set(gauges(1), 0.1_real64)
    call sonde_set(gauges(2), 0.5_real32)
    call sonde_set(gauges(3), 1152921504606846976_int64)
    call sonde_set(gauges(4), -4_int32)

    counter = sonde_counter("app_total", tags=[sonde_tag_t("b", "2"), sonde_tag_t("a", "1")])
    do i = 1, 1000
      call sonde_add(counter)
    end do
    call sonde_add(counter, 10_int32)
    call sonde_add(counter, 100_int64)
    call sonde_add(counter, 0.5_real32)
    call sonde_add(counter, 0.25_real64)
    call sonde_add(counter, -1)
    counter = sonde_counter("app_total", tags=[sonde_tag_t("a", "1"), sonde_tag_t("b", "2")])
    call sonde_add(counter, 2000)

    histogram = sonde_histogram("app_values", unit="1", level=1)
    call sonde_observe(histogram, 1.5_real64)
    call sonde_observe(histogram, 2.5_real32)
    call sonde_observe(histogram, 3_int32)
    call sonde_observe(histogram, 4_int64)

    timed = sonde_gauge("app_timed")
    call system_clock(now, rate)
    call sonde_set_at(timed, 4.0_real64, 1700000000000000000_int64)
  end subroutine

  subroutine refused()
    type(sonde_metric_t) :: metric
    character(len=129) :: long
    integer :: i, status
    metric = sonde_gauge("1x")
    call expect(sonde_status() == SONDE_INVALID, "a name")
    call expect(index(sonde_error(), "1x") > 0, "an error names what is wrong")
    call expect(.not. sonde_recorded(metric), "an invalid metric")
    long = repeat("x", 129)
    metric = sonde_gauge("app_x", tags=[sonde_tag_t("a", long)])
    call expect(sonde_status() == SONDE_INVALID, "a long tag is not cut")
    metric = sonde_gauge("app_x", tags=[(sonde_tag_t(achar(96 + i), "1"), i = 1, 9)])
    call expect(sonde_status() == SONDE_INVALID, "nine tags")
    metric = sonde_gauge("app_x", level=4)
    call expect(sonde_status() == SONDE_LEVEL, "a level")
    metric = sonde_counter("app_timed")
    call expect(sonde_status() == SONDE_CONFLICT, "a conflict")
    call sonde_phase_begin(long, status)
    call expect(status == SONDE_INVALID, "a phase")
    call expect(sonde_message(SONDE_OK) == "done", "a code in words")
  end subroutine

  subroutine moments()
    integer :: status
    call sonde_init(status)
    call expect(status == SONDE_OK, "init")
    call sonde_phase_begin("  a phase  ", status)
    call expect(status == SONDE_OK, "begin")
    call sonde_phase_end("a phase", status)
    call expect(status == SONDE_OK, "end")
    call sonde_annotate("a remark", status)
    call expect(status == SONDE_OK, "a remark")
    call sonde_figure("app_speed", 2.5_real32, status=status)
    call expect(status == SONDE_OK, "a figure")
    call sonde_figure("app_speed", 3.5_real64, "1")
    call sonde_figure("app_cells", 4_int64)
    call sonde_figure("app_cells", 5, unit="1")
  end subroutine

end program
