// Where a device is mounted, from /proc/self/mountinfo.
//
// Thread safety: any thread, signal handlers too; by system calls alone, without memory of its own.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sonde::io {

// One line of mountinfo.
struct MountLine {
  uint64_t id;
  uint64_t device;    // as st_dev
  const char* root;   // within the filesystem
  const char* point;  // not decoded; may be cut, as may the line
  const char* type;
  size_t root_size, point_size, type_size;
};

// False if the text is no line of mountinfo, or is cut before the type.
bool ParseMountLine(const char* line, size_t size, MountLine* mount);

// `out` gets the text with its octal escapes decoded, fit for a tag: no control characters, cut at
// `room` - 1 bytes; "?" for an empty text.
void DecodeMountText(const char* text, size_t size, char* out, size_t room);

// The type and the mount point of the filesystem with this device: the first mount of the whole
// filesystem, else the first of a part. Where no line names the device, as for btrfs, the mount of
// `path` is taken. False if there is none.
bool FindMount(uint64_t device, int dirfd, const char* path, char (&type)[33], char (&point)[129]);

}  // namespace sonde::io
