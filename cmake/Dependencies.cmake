# What is found on the system; scripts/deps names the packages.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
# Neither as a shared library: core/fmt_instances.cc tells why.
add_library(sonde_text INTERFACE)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  set(SONDE_FMT_SOURCES fmt_instances.cc)
  target_include_directories(sonde_text SYSTEM INTERFACE
    $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  target_link_libraries(sonde_text INTERFACE fmt::fmt-header-only)
endif()
find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
pkg_check_modules(LIBFABRIC REQUIRED IMPORTED_TARGET libfabric)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
# Its functions for public keys, and what they need. Better no shared libraries: sonded would load both.
find_library(HOGWEED_LIBRARY NAMES libhogweed.a hogweed REQUIRED)
find_library(GMP_LIBRARY NAMES libgmp.a gmp REQUIRED)
add_library(sonde_hogweed INTERFACE)
target_link_libraries(sonde_hogweed INTERFACE ${HOGWEED_LIBRARY} PkgConfig::NETTLE ${GMP_LIBRARY})
# Without the definitions that go with it: they would be those of all who link the command.
pkg_check_modules(NCURSESW REQUIRED ncursesw)
add_library(sonde_curses INTERFACE)
target_include_directories(sonde_curses SYSTEM INTERFACE ${NCURSESW_INCLUDE_DIRS})
target_link_libraries(sonde_curses INTERFACE ${NCURSESW_LINK_LIBRARIES})

find_library(LEVELDB_LIBRARY leveldb REQUIRED)
find_path(LEVELDB_INCLUDE leveldb/db.h REQUIRED)
add_library(sonde_leveldb INTERFACE)
target_include_directories(sonde_leveldb SYSTEM INTERFACE ${LEVELDB_INCLUDE})
target_link_libraries(sonde_leveldb INTERFACE ${LEVELDB_LIBRARY})

find_library(SNAPPY_LIBRARY snappy REQUIRED)
find_path(SNAPPY_INCLUDE snappy-c.h REQUIRED)
add_library(sonde_snappy INTERFACE)
target_include_directories(sonde_snappy SYSTEM INTERFACE ${SNAPPY_INCLUDE})
target_link_libraries(sonde_snappy INTERFACE ${SNAPPY_LIBRARY})
# Its headers only: forward/http.cc loads it.
pkg_check_modules(LIBCURL REQUIRED libcurl)

# Better not a shared library: sonded, which every node starts, has no C++ library of the system.
find_library(RE2_LIBRARY NAMES libre2.a re2 REQUIRED)
find_path(RE2_INCLUDE re2/re2.h REQUIRED)
add_library(sonde_re2 INTERFACE)
target_include_directories(sonde_re2 SYSTEM INTERFACE ${RE2_INCLUDE})
target_link_libraries(sonde_re2 INTERFACE ${RE2_LIBRARY} Threads::Threads)

# Fourier transforms: the template alone, for doubles.
find_path(KISSFFT_INCLUDE kissfft/kissfft.hh REQUIRED)
add_library(sonde_kissfft INTERFACE)
target_include_directories(sonde_kissfft SYSTEM INTERFACE ${KISSFFT_INCLUDE})
# Files of hints.
find_path(TOML_INCLUDE toml++/toml.h REQUIRED)
add_library(sonde_toml INTERFACE)
target_include_directories(sonde_toml SYSTEM INTERFACE ${TOML_INCLUDE})

find_path(PFM_INCLUDE perfmon/pfmlib_perf_event.h REQUIRED)

if(SONDE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  # Linked by a test alone, which compares the event sets with its tables.
  find_library(PFM_LIBRARY pfm REQUIRED)
endif()
if(SONDE_BENCH)
  find_package(benchmark REQUIRED)
endif()
