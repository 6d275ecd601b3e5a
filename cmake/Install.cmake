# Where things are installed that GNUInstallDirs does not know.

set(SONDE_SLURM_PLUGIN_DIR ${CMAKE_INSTALL_LIBDIR}/slurm
  CACHE STRING "Where spank_sonde.so is installed: Slurm's PluginDir")
set(SONDE_DAEMON_DIR ${CMAKE_INSTALL_LIBEXECDIR}/sonde)
# Libraries that are preloaded, and not linked: out of the linker's way.
set(SONDE_INTERPOSER_DIR ${CMAKE_INSTALL_LIBDIR}/sonde)

# With a relative directory, the prefix is put before it, as GNUInstallDirs does.
GNUInstallDirs_get_absolute_install_dir(
  SONDE_SLURM_PLUGIN_FULL_DIR SONDE_SLURM_PLUGIN_DIR SLURM_PLUGIN_DIR)
GNUInstallDirs_get_absolute_install_dir(SONDE_DAEMON_FULL_DIR SONDE_DAEMON_DIR DAEMON_DIR)
