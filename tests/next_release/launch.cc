// In place of launcher/launch.cc: every packet has a line that this release does not know.
#include "launcher/launch.h"

namespace sonde::launch {

Writer::Writer(char kind) : most_(kind == kLaunch ? kMaxLaunch : kMaxPacket) {
  text_.push_back(kind);
  text_ += "of_the_next_release=7,8\n";
}

}  // namespace sonde::launch
