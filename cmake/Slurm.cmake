# Which Slurm the plugin is built for: the release of the headers, slurm/spank.h and those that it includes.
# libslurm is never linked. Sets SONDE_SLURM_VERSION (26.05.5), SONDE_SLURM_NUMBER (0x1a0505), the target
# sonde_slurm, which compiles with exactly these headers, and SONDE_SLURM_PLUGIN_DIR.

# The version in the headers of a directory, and its number; "" if they are not there.
function(sonde_slurm_version directory out)
  set(${out}_VERSION "" PARENT_SCOPE)
  foreach(header slurm.h slurm_errno.h spank.h)
    if(NOT EXISTS ${directory}/slurm/${header})
      return()
    endif()
  endforeach()
  if(NOT EXISTS ${directory}/slurm/slurm_version.h)
    return()
  endif()
  file(STRINGS ${directory}/slurm/slurm_version.h line
    REGEX "^#define[ \t]+SLURM_VERSION_NUMBER[ \t]+0x[0-9a-fA-F]+")
  if(line MATCHES "0x[0-9a-fA-F]+")
    set(number ${CMAKE_MATCH_0})
    math(EXPR year "${number} >> 16")
    math(EXPR month "(${number} >> 8) & 255")
    math(EXPR patch "${number} & 255")
    if(month LESS 10)
      set(month 0${month})
    endif()
    set(${out}_NUMBER ${number} PARENT_SCOPE)
    set(${out}_VERSION ${year}.${month}.${patch} PARENT_SCOPE)
  endif()
endfunction()

# Where that Slurm looks for plugins: beside its own, or else where its packager or `make install` puts
# them. Below a prefix of /usr it is told from the prefix on, so that a package for another root has the
# right place, too.
function(sonde_slurm_plugin_dir include out)
  cmake_path(GET include PARENT_PATH prefix)
  set(base "")
  if(NOT prefix MATCHES "(^|/)usr$")
    set(base ${prefix}/)
  endif()
  set(triplet lib/${CMAKE_LIBRARY_ARCHITECTURE})
  set(known ${triplet}/slurm-wlm ${triplet}/slurm lib64/slurm lib/slurm)
  foreach(directory IN LISTS known)
    # Of Slurm's plugins one that each installation has.
    if(EXISTS ${prefix}/${directory}/proctrack_linuxproc.so)
      set(${out} ${base}${directory} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(EXISTS ${prefix}/../etc/debian_version AND CMAKE_LIBRARY_ARCHITECTURE)
    set(${out} ${triplet}/slurm-wlm PARENT_SCOPE)
  elseif(base)
    set(${out} ${base}lib/slurm PARENT_SCOPE)
  else()
    set(${out} ${CMAKE_INSTALL_LIBDIR}/slurm PARENT_SCOPE)
  endif()
endfunction()

set(SLURM_INCLUDE "" CACHE PATH "The directory that has slurm/spank.h; empty: where it is found")
# An own name, for what was found must not look like what was asked for.
string(REGEX REPLACE "(.)/+$" "\\1" found "${SLURM_INCLUDE}")
if(NOT found)
  find_path(SONDE_SLURM_FOUND slurm/spank.h)
  mark_as_advanced(SONDE_SLURM_FOUND)
  set(found ${SONDE_SLURM_FOUND})
endif()
if(found)
  sonde_slurm_version(${found} SONDE_SLURM)
endif()
if(NOT SONDE_SLURM_VERSION AND SLURM_INCLUDE)
  message(FATAL_ERROR
    "SLURM_INCLUDE=${SLURM_INCLUDE}: there are no headers of Slurm. Expected were slurm/slurm.h, "
    "slurm/slurm_errno.h, slurm/spank.h, and slurm/slurm_version.h with SLURM_VERSION_NUMBER, in that "
    "directory. They are in the package slurm-devel, on Debian libslurm-dev.")
elseif(NOT SONDE_SLURM_VERSION)
  message(FATAL_ERROR
    "Slurm's headers were not found: slurm/slurm.h, slurm/slurm_errno.h, slurm/spank.h and "
    "slurm/slurm_version.h. Install slurm-devel, on Debian libslurm-dev, or name the directory that has "
    "slurm/spank.h with -DSLURM_INCLUDE=DIR.")
endif()

add_library(sonde_slurm INTERFACE)
if(NOT found IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
  # Of that directory slurm/ alone: /usr/include of another root has its C library, too.
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/slurm-headers)
  file(CREATE_LINK ${found}/slurm ${PROJECT_BINARY_DIR}/slurm-headers/slurm SYMBOLIC)
  target_include_directories(sonde_slurm SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/slurm-headers)
endif()
# The compiler says so if it finds others (spank/slurm_spank.h).
target_compile_definitions(sonde_slurm INTERFACE SONDE_SLURM_NUMBER=${SONDE_SLURM_NUMBER})

set(SONDE_SLURM_PLUGIN_DIR "" CACHE STRING
  "Where spank_sonde.so is installed; empty: in the PluginDir of the Slurm whose headers are taken")
if(NOT SONDE_SLURM_PLUGIN_DIR)
  sonde_slurm_plugin_dir(${found} SONDE_SLURM_PLUGIN_DIR)
endif()
message(STATUS "Slurm ${SONDE_SLURM_VERSION} (headers in ${found}, plugin for ${SONDE_SLURM_PLUGIN_DIR})")
