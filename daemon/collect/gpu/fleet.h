// The step's GPUs on this node, through whichever libraries know them.
//
// A library that cannot be opened for the moment, and a device that does not answer, are tried
// again after 1 s, then 2, 4, ... 64 s; the others are read meanwhile. Notes tell the profile's
// reader what becomes of them. A note also says if none of the libraries is installed: somebody
// expects GPUs of theirs here.
//
// Thread safety: none; the one thread that reads GPUs (worker.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/collect/gpu/library.h"
#include "daemon/collect/gpu/reading.h"
#include "daemon/collect/gpu/selection.h"

namespace sonde::collect::gpu {

// A device's newest reading.
struct DeviceReading {
  // As the user calls it: the number of Slurm and of nvidia-smi. Of a second vendor on the node,
  // its name is in front: AMD0.
  std::string name;
  Nanos read_at = 0;  // of Clock::Monotonic
  Reading reading;
};

class Fleet {
 public:
  struct Options {
    std::vector<std::unique_ptr<Library>> libraries;
    std::string wanted;  // selection.h
    const Clock* clock = &Clock::System();
  };
  explicit Fleet(Options options);

  // Opens what is not open, and reads every device once. May block.
  void Read();
  // Grows, and never shrinks.
  const std::vector<DeviceReading>& devices() const { return readings_; }
  // Each is given once.
  std::vector<std::string> TakeNotes();

 private:
  struct Retry {
    Nanos at = 0;
    Nanos pause = 0;
    void Failed(Nanos now);
  };
  struct Opening {
    std::unique_ptr<Library> library;
    bool settled = false;  // open, or never will be
    bool noted = false;
    Retry retry;
  };
  struct Place {
    Library* library;
    size_t device;
    Retry retry;
    Nanos lost_at = 0;  // 0: it answers
    int losses = 0;
  };

  void Open(Opening& opening, Nanos now);
  void AddDevices(Library& library);
  void Complain();
  void Read(Place& place, DeviceReading& to);

  Options options_;
  Selection wanted_;
  std::vector<Opening> openings_;
  std::vector<Place> places_;  // beside readings_
  std::vector<DeviceReading> readings_;
  std::vector<std::string> notes_;
  std::string vendor_;  // whose devices have bare numbers
  bool any_library_ = false;
  size_t others_ = 0;  // devices that are not the step's
};

}  // namespace sonde::collect::gpu
