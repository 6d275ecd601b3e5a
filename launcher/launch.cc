#include "launcher/launch.h"

namespace sonde::launch {

Writer::Writer(char kind) : most_(kind == kLaunch ? kMaxLaunch : kMaxPacket) {
  text_.push_back(kind);
}

}  // namespace sonde::launch
