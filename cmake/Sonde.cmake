# How every target of the house is compiled.

add_library(sonde_flags INTERFACE)
target_include_directories(sonde_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(sonde_flags INTERFACE _GNU_SOURCE SONDE_VERSION="${PROJECT_VERSION}")
target_compile_options(sonde_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers)
# GCC looks for memory that it could give back each time it has 128 MB, which is a twentieth of its time.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(sonde_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
endif()
# So that a program has of a folder what it uses, however it was compiled. Not the fuzzers, whose
# counters lie in sections that the linker takes for unused.
if(NOT SONDE_FUZZ)
  target_compile_options(sonde_flags INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(sonde_flags INTERFACE -Wl,--gc-sections)
endif()
if(SONDE_WERROR)
  target_compile_options(sonde_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(sonde_flags INTERFACE -Wthread-safety)
elseif(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  # Asio's fences are beyond GCC's thread sanitizer, which says so as a warning.
  target_compile_options(sonde_flags INTERFACE -Wno-tsan)
endif()

# A room of the house as a static library: sonde_room(NAME SOURCES ... LINK ...).
function(sonde_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC sonde_flags ${ARG_LINK})
endfunction()

# Half of the time of a build is that of the tests' own files: they need not be fast, and a backtrace
# with lines is enough.
add_library(sonde_test_flags INTERFACE)
target_compile_options(sonde_test_flags INTERFACE $<$<CONFIG:RelWithDebInfo>:-O1 -g1>)

# A unit test program: sonde_test(NAME SOURCES ... LINK ...). Every TEST is a test of ctest.
function(sonde_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  # Six files of a test took the compiler a third of the time together that they took alone.
  set_target_properties(${name} PROPERTIES SONDE_FILES_A_UNIT 7)
  target_link_libraries(${name}
    PRIVATE sonde_flags sonde_test_flags ${ARG_LINK} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS unit)
endfunction()

# A fuzzer: tests/fuzz/NAME.cc defines LLVMFuzzerTestOneInput. With SONDE_FUZZ it is a libFuzzer
# program; without, it is linked with a small driver that replays the files of its corpus folder
# and a bounded number of seeded mutations of them, as a test.
function(sonde_fuzzer name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE sonde_flags sonde_test_flags ${ARG_LINK})
  if(SONDE_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    if(NOT TARGET fuzzers)
      add_custom_target(fuzzers)
    endif()
    add_dependencies(fuzzers ${name})
  else()
    if(NOT TARGET fuzz_replay)
      add_library(fuzz_replay OBJECT replay.cc)
      target_link_libraries(fuzz_replay PRIVATE sonde_flags sonde_test_flags)
    endif()
    target_link_libraries(${name} PRIVATE fuzz_replay)
    add_test(NAME fuzz.${name} COMMAND ${name} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz)
  endif()
endfunction()

# A library to be preloaded into applications: sonde_interposer(TARGET NAME [DIRECTORY]). It exports
# what NAME.map says, brings nothing of the C++ runtime, and is never unloaded. DIRECTORY: where it is
# installed, if not with the others.
function(sonde_interposer target name)
  set(directory ${SONDE_INTERPOSER_DIR})
  if(ARGC GREATER 2)
    set(directory ${ARGV2})
  endif()
  set(map ${CMAKE_CURRENT_SOURCE_DIR}/${name}.map)
  target_link_libraries(${target} PRIVATE sonde_flags Threads::Threads ${CMAKE_DL_LIBS})
  target_compile_options(${target} PRIVATE
    -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-builtin -ftls-model=initial-exec)
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${map} -Wl,-z,nodelete -Wl,-z,relro)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} LINKER_LANGUAGE C LINK_DEPENDS ${map}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libclient/sonde)
  install(TARGETS ${target} LIBRARY DESTINATION ${directory})
  sonde_split_debug(${target} ${directory})
endfunction()
