# Several files to a translation unit. More than half of the time of a build is that of reading the
# same headers; files that are compiled together read them once.
#
# A unit is what a target has of one folder. So a name in an unnamed namespace is the folder's and not
# the file's: two files of a folder that have one in common do not compile. Units name their files from
# the root of the project, which CMake's own (UNITY_BUILD) do not: so the compiler's cache serves every
# checkout.

option(SONDE_UNITY "Compile the files of a folder together" OFF)

# Rooms in which neither a step nor an answer to a question spends its time: what a person waits for a
# moment for. The compiler takes a third less time for them, which is most of a first build's.
set(SONDE_COLD
  cli daemon/head/alarms daemon/head/slurm forward insight/hints insight/runs profiles/compare profiles/report
  profiles/select profiles/upkeep serve web/proxy web/server)
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

# The folder with whose unit the file of a target in `directory` is compiled, from the root of the
# project; "" if it is compiled alone: what is generated, what has options of
# its own, and what says so by SKIP_UNITY_BUILD_INCLUSION.
function(sonde_folder_of_unit file directory out)
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
  set(${out} ${folder} PARENT_SCOPE)
endfunction()

# Has a target compiled by units: sonde_unity(NAME).
function(sonde_unity target)
  get_target_property(type ${target} TYPE)
  if(NOT type MATCHES "_LIBRARY$|^EXECUTABLE$" OR type STREQUAL INTERFACE_LIBRARY)
    return()
  endif()
  get_target_property(one_by_one ${target} SONDE_ONE_BY_ONE)
  if(one_by_one)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(directory ${target} SOURCE_DIR)
  get_target_property(binary_directory ${target} BINARY_DIR)
  set(alone "")
  set(folders "")
  foreach(source IN LISTS sources)
    if(source MATCHES "^\\$<")
      list(APPEND alone ${source})
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${directory} NORMALIZE OUTPUT_VARIABLE file)
    sonde_folder_of_unit(${file} ${directory} folder)
    if(folder STREQUAL "")
      list(APPEND alone ${file})
    else()
      string(MAKE_C_IDENTIFIER ${folder} name)
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      list(APPEND folders ${name})
      list(APPEND files_of_${name} ${file})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(name IN LISTS folders)
    list(LENGTH files_of_${name} count)
    if(count EQUAL 1)
      list(APPEND alone ${PROJECT_SOURCE_DIR}/${files_of_${name}})
      continue()
    endif()
    list(GET files_of_${name} 0 first)
    list(TRANSFORM files_of_${name} REPLACE "(.+)" "#include \"\\1\"\n")
    string(JOIN "" text ${files_of_${name}})
    set(unit ${binary_directory}/units/${target}/${name}.cc)
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
    list(APPEND alone ${unit})
    cmake_path(GET first PARENT_PATH folder)
    sonde_is_cold(${folder} cold)
    if(cold)
      set_source_files_properties(${unit} TARGET_DIRECTORY ${target} PROPERTIES
        COMPILE_OPTIONS "${SONDE_COLD_OPTIONS}")
    endif()
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${alone})
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
