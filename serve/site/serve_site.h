// sonde serve --site: the archives of all users of a site, each for its owner and for
// administrators.
//
// There are three kinds of processes. The first one stays root and starts others (starter.h). The
// door has no rights; it accepts connections and finds out who asks (door.h). Each user whose
// archive is viewed has a process with his identity (user_process.h), so that it reads nothing that
// he could not read himself, also where root may read nothing, as on NFS.
//
// Thread safety: one thread, main's.
#pragma once

#include <string>

#include "core/config.h"
#include "core/status.h"

namespace sonde::site {

inline constexpr const char* kDefaultListen = "unix:/run/sonde/site.sock";
inline constexpr const char* kDefaultSocket = "/run/sonde/site.sock";

// Runs until a signal ends it. `listen`: as Listen takes it.
Status ServeSite(Config config, const std::string& listen);

}  // namespace sonde::site
