#include "daemon/collect/gpu/fleet.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "daemon/collect/gpu/call_gate.h"

namespace sonde::collect::gpu {
namespace {

constexpr int kMaxLossNotes = 4;  // of a device that comes and goes

}  // namespace

void Fleet::Retry::Failed(Nanos now) {
  pause = std::clamp(2 * pause, kFirstPause, kLongestPause);
  at = now + pause;
}

Fleet::Fleet(Options options) : options_(std::move(options)), wanted_(options_.wanted) {
  for (std::unique_ptr<Library>& library : options_.libraries) {
    openings_.push_back({std::move(library)});
  }
}

void Fleet::Read() {
  for (Opening& opening : openings_) {
    const Nanos now = options_.clock->Monotonic();
    if (!opening.settled && now >= opening.retry.at) Open(opening, now);
  }
  for (size_t i = 0; i < places_.size(); ++i) Read(places_[i], readings_[i]);
}

void Fleet::Open(Opening& opening, Nanos now) {
  Library& library = *opening.library;
  const Status status = library.Open();
  switch (status.code()) {
    case Code::kOk:
      opening.settled = any_library_ = true;
      AddDevices(library);
      break;
    case Code::kNotFound:
      opening.settled = true;
      break;
    case Code::kUnsupported:
      opening.settled = any_library_ = true;
      notes_.push_back(
          fmt::format("no metrics of {} GPUs: {}", library.vendor(), status.message()));
      break;
    default:
      any_library_ = true;
      if (!std::exchange(opening.noted, true)) {
        notes_.push_back(fmt::format("no metrics of {} GPUs: {}; tried again at growing intervals",
                                     library.vendor(), status.message()));
      }
      opening.retry.Failed(now);
      return;
  }
  if (std::all_of(openings_.begin(), openings_.end(), [](const Opening& o) { return o.settled; })) {
    Complain();
  }
}

void Fleet::AddDevices(Library& library) {
  const std::vector<Device>& devices = library.devices();
  if (devices.empty()) return;
  if (vendor_.empty()) vendor_ = library.vendor();
  const bool numbered = vendor_ == library.vendor();
  std::vector<bool> wanted(devices.size());
  for (const std::string& uuid : wanted_.uuids()) {
    const int at = library.Find(uuid);
    if (at >= 0 && static_cast<size_t>(at) < wanted.size()) wanted[static_cast<size_t>(at)] = true;
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    // Numbers mean the first vendor's devices: nobody says which of two vendors is meant.
    if (!wanted[i] && !wanted_.all() && !(numbered && wanted_.HasNumber(devices[i].index))) {
      ++others_;
      continue;
    }
    places_.push_back({&library, i, {}, 0, 0});
    DeviceReading& reading = readings_.emplace_back();
    reading.name = fmt::format("{}{}", numbered ? "" : library.vendor(), devices[i].index);
  }
}

// Notes what is amiss, now that nothing more will be found.
void Fleet::Complain() {
  if (!places_.empty()) return;
  if (!any_library_) {
    std::string vendors;
    std::string files;
    for (const Opening& opening : openings_) {
      vendors += fmt::format("{}{}", vendors.empty() ? "" : " and ", opening.library->vendor());
      files += fmt::format("{}{}", files.empty() ? "" : ", ", opening.library->file());
    }
    const std::string what =
        wanted_.all() ? fmt::format("the node has GPUs of {}", vendors)
                      : fmt::format("the step has GPUs ({})", options_.wanted.substr(0, 128));
    notes_.push_back(fmt::format("no GPU metrics: {}, but {} not installed on the node: {}", what,
                                 openings_.size() == 1 ? "this is" : "these are", files));
  } else if (others_ > 0) {
    notes_.push_back(fmt::format(
        "no GPU metrics: none of the {} GPUs found on the node is one of the step's ({})", others_,
        options_.wanted.substr(0, 128)));
  }
}

void Fleet::Read(Place& place, DeviceReading& to) {
  const Nanos now = options_.clock->Monotonic();
  if (now < place.retry.at) return;
  to.read_at = now;
  const Status status = place.library->Read(place.device, to.reading);
  if (status.ok()) {
    if (place.lost_at != 0 && place.losses <= kMaxLossNotes) {
      notes_.push_back(fmt::format("GPU {} answers again, after {}", to.name,
                                   FormatDuration(now - place.lost_at)));
    }
    place.lost_at = 0;
    place.retry = {};
    return;
  }
  if (place.lost_at == 0) {
    place.lost_at = std::max<Nanos>(now, 1);
    if (++place.losses <= kMaxLossNotes) {
      notes_.push_back(fmt::format("GPU {} does not answer: {}; tried again at growing intervals",
                                   to.name, status.message()));
    }
  }
  place.retry.Failed(now);
}

std::vector<std::string> Fleet::TakeNotes() { return std::exchange(notes_, {}); }

}  // namespace sonde::collect::gpu
