// Whether another origin's page asks, as a browser says of a request.
//
// Browsers say Sec-Fetch-Site to https and to the machine's own addresses only. Elsewhere Origin
// tells: of every request that may change something, and of those whose answer a page could read.
// Neither is there in a program's request. A page can forge none of them.
//
// Thread safety: functions without state.
#pragma once

#include <string_view>

namespace sonde::web {

// The fields Sec-Fetch-Site, Origin and Host of a request; "" where there is none.
bool IsOtherOrigin(std::string_view fetch_site, std::string_view origin, std::string_view host);

}  // namespace sonde::web
