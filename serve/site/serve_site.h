// sonde serve --site: the archives of all users of a site, each for its owner and for
// administrators.
//
// Three kinds of processes. The one that is started stays root and starts others (starter.h). The
// door has no rights; it accepts connections and finds out who asks (door.h). For each user whose
// archive is looked at there is one that has become him (user_process.h), so that nothing is read
// that he could not read himself, also where root may read nothing, as on NFS.
//
// Thread safety: one thread, main's.
#pragma once

#include <string>

#include "core/config.h"
#include "core/status.h"

namespace sonde::site {

inline constexpr const char* kDefaultListen = "unix:/run/sonde/site.sock";

// Until a signal ends it. `listen`: as Listen takes it.
Status ServeSite(Config config, const std::string& listen);

}  // namespace sonde::site
