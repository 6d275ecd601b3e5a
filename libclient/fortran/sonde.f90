! libsonde for Fortran: an application's own metrics in the record of its job step.
!
!   use sonde
!   type(sonde_metric_t) :: residual
!   residual = sonde_gauge("heat_residual", help="Largest change of a cell")
!   ...
!   call sonde_set(residual, r)
!
! A thin layer over sonde.h, which says what names, units, levels and tags may be, and what threads
! and forked children may do; docs/client.md says what becomes of the values. Blanks around texts
! are left out.
!
! A metric may be copied; copies are the same metric, and so are metrics of the same name and tags.
! None has to be closed. Without telemetry, and where a metric cannot be had, every update does
! nothing; sonde_status() tells why.
!
! Standard Fortran 2008 that needs nothing but libsonde (-lsonde). The installed module file is
! gfortran's; for another compiler, compile this file with the program.
module sonde
  use, intrinsic :: iso_c_binding
  implicit none
  private

  public :: sonde_metric_t, sonde_tag_t
  public :: sonde_counter, sonde_gauge, sonde_histogram, sonde_recorded
  public :: sonde_set, sonde_set_at, sonde_set_past, sonde_add, sonde_observe
  public :: sonde_annotate, sonde_phase_begin, sonde_phase_end, sonde_figure
  public :: sonde_init, sonde_finalize, sonde_status, sonde_message, sonde_error

  ! What a call came to, as in sonde.h.
  integer, parameter, public :: SONDE_OK = 0, SONDE_OFF = 1, SONDE_UNREACHABLE = 2, &
    SONDE_FOREIGN = 3, SONDE_INVALID = 4, SONDE_CONFLICT = 5, SONDE_LEVEL = 6, SONDE_LIMIT = 7, &
    SONDE_SYSTEM = 8, SONDE_FINALIZED = 9

  ! One more than is allowed, so that what is too long is refused and not cut.
  integer, parameter :: TEXT = 129
  integer, parameter :: MAX_TAGS = 7

  ! As in tags=[sonde_tag_t("kind", "read"), sonde_tag_t("file", name)].
  type :: sonde_tag_t
    character(len=TEXT) :: key = ""
    character(len=TEXT) :: value = ""
  end type

  type :: sonde_metric_t
    private
    type(c_ptr) :: handle = c_null_ptr  ! null: every update does nothing
    type(c_ptr) :: cell = c_null_ptr    ! a gauge's value
  end type

  ! sonde_metric_t and sonde_tag_t of sonde.h.
  type, bind(c) :: c_metric
    type(c_ptr) :: cell
    integer(c_int32_t) :: slot
    integer(c_int32_t) :: histogram
  end type
  type, bind(c) :: c_tag
    type(c_ptr) :: key
    type(c_ptr) :: value
  end type

  interface
    function c_counter(name, unit, help, level, tags, tag_count) &
        bind(c, name="sonde_counter") result(metric)
      import :: c_char, c_int, c_size_t, c_ptr, c_tag
      character(kind=c_char), dimension(*), intent(in) :: name, unit, help
      integer(c_int), value :: level
      type(c_tag), dimension(*), intent(in) :: tags
      integer(c_size_t), value :: tag_count
      type(c_ptr) :: metric
    end function
    function c_gauge(name, unit, help, level, tags, tag_count) &
        bind(c, name="sonde_gauge") result(metric)
      import :: c_char, c_int, c_size_t, c_ptr, c_tag
      character(kind=c_char), dimension(*), intent(in) :: name, unit, help
      integer(c_int), value :: level
      type(c_tag), dimension(*), intent(in) :: tags
      integer(c_size_t), value :: tag_count
      type(c_ptr) :: metric
    end function
    function c_histogram(name, unit, help, level, tags, tag_count) &
        bind(c, name="sonde_histogram") result(metric)
      import :: c_char, c_int, c_size_t, c_ptr, c_tag
      character(kind=c_char), dimension(*), intent(in) :: name, unit, help
      integer(c_int), value :: level
      type(c_tag), dimension(*), intent(in) :: tags
      integer(c_size_t), value :: tag_count
      type(c_ptr) :: metric
    end function
    ! What sonde_add() and sonde_observe() of sonde.h come to where they are not inlined.
    subroutine c_add(metric, value) bind(c, name="sonde_add_slow_")
      import :: c_ptr, c_double
      type(c_ptr), value :: metric
      real(c_double), value :: value
    end subroutine
    subroutine c_observe(metric, value) bind(c, name="sonde_observe_slow_")
      import :: c_ptr, c_double
      type(c_ptr), value :: metric
      real(c_double), value :: value
    end subroutine
    subroutine c_set_at(metric, value, time_ns) bind(c, name="sonde_set_at")
      import :: c_ptr, c_double, c_int64_t
      type(c_ptr), value :: metric
      real(c_double), value :: value
      integer(c_int64_t), value :: time_ns
    end subroutine
    function c_set_past(metric, value, time_ns) bind(c, name="sonde_set_past") result(code)
      import :: c_ptr, c_double, c_int64_t, c_int
      type(c_ptr), value :: metric
      real(c_double), value :: value
      integer(c_int64_t), value :: time_ns
      integer(c_int) :: code
    end function
    function c_annotate(text) bind(c, name="sonde_annotate") result(code)
      import :: c_char, c_int
      character(kind=c_char), dimension(*), intent(in) :: text
      integer(c_int) :: code
    end function
    function c_phase_begin(name) bind(c, name="sonde_phase_begin") result(code)
      import :: c_char, c_int
      character(kind=c_char), dimension(*), intent(in) :: name
      integer(c_int) :: code
    end function
    function c_phase_end(name) bind(c, name="sonde_phase_end") result(code)
      import :: c_char, c_int
      character(kind=c_char), dimension(*), intent(in) :: name
      integer(c_int) :: code
    end function
    function c_figure(name, value, unit) bind(c, name="sonde_figure") result(code)
      import :: c_char, c_int, c_double
      character(kind=c_char), dimension(*), intent(in) :: name, unit
      real(c_double), value :: value
      integer(c_int) :: code
    end function
    function c_init() bind(c, name="sonde_init") result(code)
      import :: c_int
      integer(c_int) :: code
    end function
    subroutine c_finalize() bind(c, name="sonde_finalize")
    end subroutine
    function c_status() bind(c, name="sonde_status") result(code)
      import :: c_int
      integer(c_int) :: code
    end function
    function c_error() bind(c, name="sonde_error") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function c_strerror(code) bind(c, name="sonde_strerror") result(text)
      import :: c_int, c_ptr
      integer(c_int), value :: code
      type(c_ptr) :: text
    end function
    pure function c_strlen(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

  ! call sonde_set(gauge, value): what is true now.
  interface sonde_set
    module procedure set_real64, set_real32, set_int64, set_int32
  end interface

  ! call sonde_add(counter [, value]): adds 1, or a value, of which negative ones are ignored; to a
  ! gauge it adds a value of either sign.
  interface sonde_add
    module procedure add_one, add_real64, add_real32, add_int64, add_int32
  end interface

  ! call sonde_observe(histogram, value)
  interface sonde_observe
    module procedure observe_real64, observe_real32, observe_int64, observe_int32
  end interface

  ! call sonde_figure(name, value [, unit] [, status]): a figure of merit, by which runs are
  ! compared. The last value given counts.
  interface sonde_figure
    module procedure figure_real64, figure_real32, figure_int64, figure_int32
  end interface

contains

  ! --- Metrics: only the name has to be given. The level is the telemetry level from which it is
  ! recorded, 1 to 4, 1 unless given.

  function sonde_counter(name, unit, help, level, tags) result(metric)
    character(len=*), intent(in) :: name
    character(len=*), intent(in), optional :: unit, help
    integer, intent(in), optional :: level
    type(sonde_tag_t), intent(in), optional :: tags(:)
    type(sonde_metric_t) :: metric
    character(len=:), allocatable, target :: texts
    type(c_tag) :: raw(MAX_TAGS + 1)
    integer(c_size_t) :: count
    call convert_tags(tags, texts, raw, count)
    metric = wrap(c_counter(c_text(name), c_text(unit), c_text(help), level_of(level), raw, count))
  end function

  function sonde_gauge(name, unit, help, level, tags) result(metric)
    character(len=*), intent(in) :: name
    character(len=*), intent(in), optional :: unit, help
    integer, intent(in), optional :: level
    type(sonde_tag_t), intent(in), optional :: tags(:)
    type(sonde_metric_t) :: metric
    character(len=:), allocatable, target :: texts
    type(c_tag) :: raw(MAX_TAGS + 1)
    integer(c_size_t) :: count
    call convert_tags(tags, texts, raw, count)
    metric = wrap(c_gauge(c_text(name), c_text(unit), c_text(help), level_of(level), raw, count))
  end function

  function sonde_histogram(name, unit, help, level, tags) result(metric)
    character(len=*), intent(in) :: name
    character(len=*), intent(in), optional :: unit, help
    integer, intent(in), optional :: level
    type(sonde_tag_t), intent(in), optional :: tags(:)
    type(sonde_metric_t) :: metric
    character(len=:), allocatable, target :: texts
    type(c_tag) :: raw(MAX_TAGS + 1)
    integer(c_size_t) :: count
    call convert_tags(tags, texts, raw, count)
    metric = wrap(c_histogram(c_text(name), c_text(unit), c_text(help), level_of(level), raw, count))
  end function

  ! Whether updates of the metric have an effect.
  elemental function sonde_recorded(metric) result(recorded)
    type(sonde_metric_t), intent(in) :: metric
    logical :: recorded
    recorded = c_associated(metric%handle)
  end function

  ! --- Updates

  subroutine set_real64(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    real(c_double), intent(in) :: value
    ! Volatile: another process reads it.
    real(c_double), pointer, volatile :: cell
    if (.not. c_associated(metric%cell)) return
    call c_f_pointer(metric%cell, cell)
    cell = value
  end subroutine
  subroutine set_real32(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    real(c_float), intent(in) :: value
    call set_real64(metric, real(value, c_double))
  end subroutine
  subroutine set_int64(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    integer(c_int64_t), intent(in) :: value
    call set_real64(metric, real(value, c_double))
  end subroutine
  subroutine set_int32(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    integer(c_int32_t), intent(in) :: value
    call set_real64(metric, real(value, c_double))
  end subroutine

  ! A value measured at a time of its own, nanoseconds since 1970 UTC. Feed a gauge by this or by
  ! sonde_set, not by both.
  subroutine sonde_set_at(metric, value, time_ns)
    type(sonde_metric_t), intent(in) :: metric
    real(c_double), intent(in) :: value
    integer(c_int64_t), intent(in) :: time_ns
    call c_set_at(metric%handle, value, time_ns)
  end subroutine

  ! A value that a gauge had at a time that has passed, nanoseconds since 1970 UTC: recorded at that
  ! time's tick, whatever is set at other times.
  subroutine sonde_set_past(metric, value, time_ns)
    type(sonde_metric_t), intent(in) :: metric
    real(c_double), intent(in) :: value
    integer(c_int64_t), intent(in) :: time_ns
    integer(c_int) :: code
    code = c_set_past(metric%handle, value, time_ns)
  end subroutine

  subroutine add_one(metric)
    type(sonde_metric_t), intent(in) :: metric
    call add_real64(metric, 1.0_c_double)
  end subroutine
  subroutine add_real64(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    real(c_double), intent(in) :: value
    if (c_associated(metric%handle)) call c_add(metric%handle, value)
  end subroutine
  subroutine add_real32(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    real(c_float), intent(in) :: value
    call add_real64(metric, real(value, c_double))
  end subroutine
  subroutine add_int64(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    integer(c_int64_t), intent(in) :: value
    call add_real64(metric, real(value, c_double))
  end subroutine
  subroutine add_int32(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    integer(c_int32_t), intent(in) :: value
    call add_real64(metric, real(value, c_double))
  end subroutine

  subroutine observe_real64(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    real(c_double), intent(in) :: value
    if (c_associated(metric%handle)) call c_observe(metric%handle, value)
  end subroutine
  subroutine observe_real32(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    real(c_float), intent(in) :: value
    call observe_real64(metric, real(value, c_double))
  end subroutine
  subroutine observe_int64(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    integer(c_int64_t), intent(in) :: value
    call observe_real64(metric, real(value, c_double))
  end subroutine
  subroutine observe_int32(metric, value)
    type(sonde_metric_t), intent(in) :: metric
    integer(c_int32_t), intent(in) :: value
    call observe_real64(metric, real(value, c_double))
  end subroutine

  ! --- Moments. `status` is a code of above.

  ! A remark, shown on every plot at its time: at most 192 bytes.
  subroutine sonde_annotate(text, status)
    character(len=*), intent(in) :: text
    integer, intent(out), optional :: status
    call answer(c_annotate(c_text(text)), status)
  end subroutine

  ! A phase of the program, shown as a band on every plot: at most 128 bytes.
  subroutine sonde_phase_begin(name, status)
    character(len=*), intent(in) :: name
    integer, intent(out), optional :: status
    call answer(c_phase_begin(c_text(name)), status)
  end subroutine
  subroutine sonde_phase_end(name, status)
    character(len=*), intent(in) :: name
    integer, intent(out), optional :: status
    call answer(c_phase_end(c_text(name)), status)
  end subroutine

  subroutine figure_real64(name, value, unit, status)
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: value
    character(len=*), intent(in), optional :: unit
    integer, intent(out), optional :: status
    call answer(c_figure(c_text(name), value, c_text(unit)), status)
  end subroutine
  subroutine figure_real32(name, value, unit, status)
    character(len=*), intent(in) :: name
    real(c_float), intent(in) :: value
    character(len=*), intent(in), optional :: unit
    integer, intent(out), optional :: status
    call figure_real64(name, real(value, c_double), unit, status)
  end subroutine
  subroutine figure_int64(name, value, unit, status)
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(in) :: value
    character(len=*), intent(in), optional :: unit
    integer, intent(out), optional :: status
    call figure_real64(name, real(value, c_double), unit, status)
  end subroutine
  subroutine figure_int32(name, value, unit, status)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: value
    character(len=*), intent(in), optional :: unit
    integer, intent(out), optional :: status
    call figure_real64(name, real(value, c_double), unit, status)
  end subroutine

  ! --- The process

  ! Attaches this process. Optional: the first metric does it.
  subroutine sonde_init(status)
    integer, intent(out), optional :: status
    call answer(c_init(), status)
  end subroutine

  ! Ends the record of this process now instead of at its exit.
  subroutine sonde_finalize()
    call c_finalize()
  end subroutine

  ! How the calling thread's last registration, moment, sonde_init or sonde_finalize went.
  function sonde_status() result(code)
    integer :: code
    code = int(c_status())
  end function

  ! That code in words.
  function sonde_message(code) result(message)
    integer, intent(in) :: code
    character(len=:), allocatable :: message
    message = fortran_text(c_strerror(int(code, c_int)))
  end function

  ! Why that call failed, in words that name what is wrong and what is allowed.
  function sonde_error() result(message)
    character(len=:), allocatable :: message
    message = fortran_text(c_error())
  end function

  ! --- Conversions

  subroutine answer(code, status)
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: status
    if (present(status)) status = int(code)
  end subroutine

  ! Without the blanks around it, as C has it.
  function c_text(text) result(converted)
    character(len=*), intent(in), optional :: text
    character(kind=c_char, len=:), allocatable :: converted
    if (present(text)) then
      converted = trim(adjustl(text)) // c_null_char
    else
      converted = c_null_char
    end if
  end function

  function fortran_text(text) result(converted)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: converted
    character(kind=c_char), pointer :: bytes(:)
    integer :: i, error
    call c_f_pointer(text, bytes, [c_strlen(text)])
    allocate(character(len=size(bytes)) :: converted, stat=error)
    if (error /= 0) return
    do i = 1, size(bytes)
      converted(i:i) = bytes(i)
    end do
  end function

  function level_of(level) result(converted)
    integer, intent(in), optional :: level
    integer(c_int) :: converted
    converted = 0
    if (present(level)) converted = int(level, c_int)
  end function

  function wrap(handle) result(metric)
    type(c_ptr), intent(in) :: handle
    type(sonde_metric_t) :: metric
    type(c_metric), pointer :: c
    metric%handle = handle
    if (.not. c_associated(handle)) return
    call c_f_pointer(handle, c)
    metric%cell = c%cell
  end function

  ! The tags as C has them, pointing into `texts`. One more than are allowed is enough for libsonde
  ! to refuse them all; so it does for want of memory.
  subroutine convert_tags(tags, texts, raw, count)
    type(sonde_tag_t), intent(in), optional :: tags(:)
    character(len=:), allocatable, target, intent(out) :: texts
    type(c_tag), intent(out) :: raw(:)
    integer(c_size_t), intent(out) :: count
    integer :: i, at, error
    count = 0
    if (present(tags)) count = min(size(tags), size(raw))
    allocate(character(len=2 * (TEXT + 1) * int(count)) :: texts, stat=error)
    if (error /= 0) then
      count = size(raw)
      return
    end if
    at = 1
    do i = 1, int(count)
      call put(tags(i)%key, raw(i)%key)
      call put(tags(i)%value, raw(i)%value)
    end do

  contains

    subroutine put(text, address)
      character(len=*), intent(in) :: text
      type(c_ptr), intent(out) :: address
      character(len=:), allocatable :: converted
      converted = c_text(text)
      texts(at:at + len(converted) - 1) = converted
      address = c_loc(texts(at:at))
      at = at + len(converted)
    end subroutine
  end subroutine

end module
