# Several files to a translation unit. More than half of the time of a build is that of reading the
# same headers; files that are compiled together read them once.
#
# A unit is what a target has of one folder, or of several small ones (SONDE_TOGETHER). So a name in an
# unnamed namespace is the unit's and not the file's: two files of a unit that have one in common do not
# compile. Units name their files from the root of the project, which CMake's own (UNITY_BUILD) do not:
# so the compiler's cache serves every checkout.

option(SONDE_UNITY "Compile the files of a folder together" OFF)

# Rooms in which neither a step nor an answer to a question spends its time: what a person waits for a
# moment for. The compiler takes a third less time for them, which is most of a first build's.
set(SONDE_COLD
  cli daemon/head/alarms daemon/head/slurm forward insight/hints insight/runs profiles/archive
  profiles/compare profiles/disk profiles/json profiles/live profiles/model profiles/report profiles/select
  profiles/upkeep serve web/proxy web/server)
set(SONDE_COLD_OPTIONS "$<$<CONFIG:RelWithDebInfo>:-O1>")

# Whether a folder, from the root of the project, is in one of these rooms.
function(sonde_is_cold folder out)
  set(${out} FALSE PARENT_SCOPE)
  foreach(room IN LISTS SONDE_COLD)
    cmake_path(IS_PREFIX room ${folder} within)
    if(within)
      set(${out} TRUE PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# Folders of a target that are compiled together.
set(SONDE_TOGETHER
  "cli/check cli/insight cli/model cli/open cli/peaks cli/roofline cli/step"
  "core core/text"
  "daemon/collect daemon/collect/gpu daemon/collect/gpu/vendors daemon/collect/read"
  "daemon/collect/filesystems daemon/collect/os/net"
  "daemon/head/alarms daemon/head/slurm"
  "daemon daemon/message daemon/tree"
  "daemon/node daemon/node/ask daemon/node/launcher daemon/node/links daemon/node/record"
  "insight insight/hardware"
  "profiles/compare profiles/report profiles/select"
  "profiles/disk profiles/json profiles/live"
  "web web/http web/live web/prometheus web/route web/source"
  "web/proxy web/proxy/traces"
  "launcher launcher/site")

# The unit that the file of a target in `directory` is compiled in, by the name of a folder from the root
# of the project; "" if it is compiled alone: what is generated, what has options of its own, and what
# says so by SKIP_UNITY_BUILD_INCLUSION.
function(sonde_unit_of file directory out)
  set(${out} "" PARENT_SCOPE)
  cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${file} generated)
  if(generated OR NOT file MATCHES "\\.cc$")
    return()
  endif()
  foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS SKIP_UNITY_BUILD_INCLUSION)
    get_source_file_property(value ${file} DIRECTORY ${directory} ${property})
    if(value)
      return()
    endif()
  endforeach()
  cmake_path(GET file PARENT_PATH folder)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  foreach(folders IN LISTS SONDE_TOGETHER)
    if(" ${folders} " MATCHES " ${folder} ")
      string(REGEX MATCH "^[^ ]+" folder ${folders})
      break()
    endif()
  endforeach()
  set(${out} ${folder} PARENT_SCOPE)
endfunction()

# A unit of a target: sonde_add_unit(TARGET NAME FOLDER FILES OUT). A file that is a unit by itself stays
# what it is.
function(sonde_add_unit target name folder files out)
  get_target_property(binary_directory ${target} BINARY_DIR)
  list(LENGTH files count)
  if(count EQUAL 1)
    set(unit ${PROJECT_SOURCE_DIR}/${files})
  else()
    list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\"\n")
    string(JOIN "" text ${files})
    set(unit ${binary_directory}/units/${target}/${name}.cc)
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
  endif()
  sonde_is_cold(${folder} cold)
  if(cold)
    set_source_files_properties(${unit} TARGET_DIRECTORY ${target} PROPERTIES
      COMPILE_OPTIONS "${SONDE_COLD_OPTIONS}")
  endif()
  set(${out} ${unit} PARENT_SCOPE)
endfunction()

# Has a target compiled by units: sonde_unity(NAME). One with the property SONDE_FILES_A_UNIT has units of no
# more files than that.
function(sonde_unity target)
  get_target_property(type ${target} TYPE)
  if(NOT type MATCHES "_LIBRARY$|^EXECUTABLE$" OR type STREQUAL INTERFACE_LIBRARY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(directory ${target} SOURCE_DIR)
  get_target_property(most ${target} SONDE_FILES_A_UNIT)
  set(compiled "")
  set(folders "")
  foreach(source IN LISTS sources)
    if(source MATCHES "^\\$<")
      list(APPEND compiled ${source})
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${directory} NORMALIZE OUTPUT_VARIABLE file)
    sonde_unit_of(${file} ${directory} folder)
    if(folder STREQUAL "")
      list(APPEND compiled ${file})
    else()
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      list(APPEND folders ${folder})
      list(APPEND files_of_${folder} ${file})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    string(MAKE_C_IDENTIFIER ${folder} name)
    list(LENGTH files_of_${folder} count)
    set(units 1)
    if(most)
      math(EXPR units "(${count} + ${most} - 1) / ${most}")
    endif()
    set(begin 0)
    foreach(number RANGE 1 ${units})
      math(EXPR end "${count} * ${number} / ${units}")
      math(EXPR length "${end} - ${begin}")
      list(SUBLIST files_of_${folder} ${begin} ${length} files)
      set(begin ${end})
      set(part "")
      if(units GREATER 1)
        set(part _${number})
      endif()
      sonde_add_unit(${target} ${name}${part} ${folder} "${files}" unit)
      list(APPEND compiled ${unit})
    endforeach()
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${compiled})
  # In a unit it also tells of what the files have in their own unnamed namespaces.
  target_compile_options(${target} PRIVATE
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:-Wno-subobject-linkage>)
endfunction()

# Of all targets of a folder and of those below it.
function(sonde_unity_below directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    sonde_unity(${target})
  endforeach()
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(one IN LISTS below)
    sonde_unity_below(${one})
  endforeach()
endfunction()
