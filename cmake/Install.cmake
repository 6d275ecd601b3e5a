# Where things are installed that GNUInstallDirs does not know.

set(SONDE_DAEMON_DIR ${CMAKE_INSTALL_LIBEXECDIR}/sonde)
# Libraries that are preloaded, and not linked: out of the linker's way.
set(SONDE_INTERPOSER_DIR ${CMAKE_INSTALL_LIBDIR}/sonde)

# With a relative directory, the prefix is put before it, as GNUInstallDirs does.
GNUInstallDirs_get_absolute_install_dir(
  SONDE_SLURM_PLUGIN_FULL_DIR SONDE_SLURM_PLUGIN_DIR SLURM_PLUGIN_DIR)
GNUInstallDirs_get_absolute_install_dir(SONDE_DAEMON_FULL_DIR SONDE_DAEMON_DIR DAEMON_DIR)

option(SONDE_SPLIT_DEBUG
  "Install programs and libraries stripped, and their debug information in lib/debug below the prefix" ON)

# What a target has in `directory`, once it was installed there: without debug information, which goes
# to PREFIX/lib/debug under the same path; debuggers look there by themselves where the prefix is /usr.
# The file takes the other's place in one step, for what runs has it open. Packagers who split debug
# information themselves turn this off, and `cmake --install --strip` leaves nothing to split.
function(sonde_split_debug target directory)
  if(NOT SONDE_SPLIT_DEBUG OR NOT CMAKE_OBJCOPY)
    return()
  endif()
  if(NOT IS_ABSOLUTE ${directory})
    set(directory "\${CMAKE_INSTALL_PREFIX}/${directory}")
  endif()
  install(CODE "
    set(installed \"${directory}/$<TARGET_FILE_NAME:${target}>\")
    set(debug \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/debug\${installed}.debug\")
    set(installed \"\$ENV{DESTDIR}\${installed}\")
    get_filename_component(debug_directory \"\${debug}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${debug_directory}\")
    if(NOT CMAKE_INSTALL_DO_STRIP)
      execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --only-keep-debug \"\${installed}\" \"\${debug}\"
        COMMAND_ERROR_IS_FATAL ANY)
      execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --strip-unneeded
          \"--add-gnu-debuglink=\${debug}\" \"\${installed}\" \"\${installed}.stripped\"
        COMMAND_ERROR_IS_FATAL ANY)
      file(RENAME \"\${installed}.stripped\" \"\${installed}\")
    endif()")
endfunction()
