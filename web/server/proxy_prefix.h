// What reverse proxies for people leave in front of a path.
//
// Most of them take their own prefix off. Those that keep it (code-server's /absproxy/PORT,
// jupyter-server-proxy's /proxy/absolute/PORT, Open OnDemand's /node/HOST/PORT, each perhaps below
// a path of its own, such as /user/NAME) say the port, so that the prefix can be told from a path.
#pragma once

#include <string_view>

namespace sonde::web {

// A request's target without such a prefix; the target itself if it has none.
std::string_view WithoutProxyPrefix(std::string_view target);

}  // namespace sonde::web
