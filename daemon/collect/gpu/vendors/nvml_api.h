// What is used of NVML, NVIDIA's library: its functions and structures as nvml.h declares them.
//
// Declared here because nvml.h comes with CUDA, which a build need not have. Values and layouts are
// parts of a stable binary interface: never change them. A function's newer version has another
// name; where the arguments are the same, the older one serves as well.
//
// Thread safety: types.
#pragma once

#include <cstdint>

namespace sonde::collect::gpu::nvml {

using Handle = struct Opaque*;  // nvmlDevice_t, nvmlEventSet_t

// nvmlReturn_t
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kArgumentVersionMismatch = 25,
  kDeprecated = 26,
  kGpuNotFound = 28,
};

struct Utilization {  // percent
  unsigned int gpu;
  unsigned int memory;
};

struct Memory {  // bytes; `used` contains what the driver reserves
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct MemoryV2 {  // bytes; `used` is what was allocated
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
inline constexpr unsigned int kMemoryV2 = sizeof(MemoryV2) | (2u << 24u);

struct PciInfo {
  char bus_id_legacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pci_device_id;
  unsigned int pci_subsystem_id;
  char bus_id[32];
};

struct ProcessInfo {  // versions 2 and 3
  unsigned int pid;
  unsigned long long used_memory;  // bytes; all ones if not known
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

struct FieldValue {
  unsigned int field;
  unsigned int scope;
  long long timestamp;
  long long latency;
  int type;
  int result;  // a Return; the value holds only if it is kSuccess
  union {
    double as_double;
    int as_int;
    unsigned int as_unsigned;
    unsigned long as_unsigned_long;
    unsigned long long as_unsigned_long_long;
    long long as_long_long;
    unsigned short as_unsigned_short;
  } value;
};

// nvmlValueType_t
enum ValueType : int {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5,
  kUnsignedShort = 6,
};

// NVML_FI_DEV_*
inline constexpr unsigned int kFieldMemoryTemperature = 82;  // degrees
inline constexpr unsigned int kFieldNvlinkCount = 91;
inline constexpr unsigned int kFieldNvlinkTransmitted = 138;  // KiB; scope: a link or all
inline constexpr unsigned int kFieldNvlinkReceived = 139;
inline constexpr unsigned int kFieldPcieTransmitted = 197;  // bytes
inline constexpr unsigned int kFieldPcieReceived = 198;
inline constexpr unsigned int kAllLinks = 0xffffffffu;

// nvmlClocksEventReason*
inline constexpr unsigned long long kReasonSoftwarePowerCap = 0x4;
inline constexpr unsigned long long kReasonHardwareSlowdown = 0x8;
inline constexpr unsigned long long kReasonSoftwareThermal = 0x20;
inline constexpr unsigned long long kReasonHardwareThermal = 0x40;
inline constexpr unsigned long long kReasonPowerBrake = 0x80;

inline constexpr int kTemperatureGpu = 0;  // nvmlTemperatureSensors_t
inline constexpr int kClockSm = 1;         // nvmlClockType_t
inline constexpr int kClockMemory = 2;
inline constexpr int kClockVideo = 3;
inline constexpr int kPcieTransmit = 0;  // nvmlPcieUtilCounter_t
inline constexpr int kPcieReceive = 1;
inline constexpr int kEccCorrected = 0;  // nvmlMemoryErrorType_t
inline constexpr int kEccUncorrected = 1;
inline constexpr int kEccVolatile = 0;  // nvmlEccCounterType_t: since the driver was loaded
inline constexpr unsigned long long kEventXid = 0x8;

struct EventData {
  Handle device;
  unsigned long long type;
  unsigned long long data;  // the XID
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

// Null: the library has no such function.
struct Api {
  int (*init)();
  int (*shutdown)();
  const char* (*error_string)(int);
  int (*count)(unsigned int*);
  int (*handle_by_index)(unsigned int, Handle*);
  int (*handle_by_uuid)(const char*, Handle*);
  int (*parent_of_mig)(Handle, Handle*);
  int (*uuid)(Handle, char*, unsigned int);
  int (*name)(Handle, char*, unsigned int);
  int (*pci)(Handle, PciInfo*);
  int (*utilization)(Handle, Utilization*);
  int (*encoder)(Handle, unsigned int*, unsigned int*);
  int (*decoder)(Handle, unsigned int*, unsigned int*);
  int (*memory)(Handle, Memory*);
  int (*memory_v2)(Handle, MemoryV2*);
  int (*power)(Handle, unsigned int*);
  int (*power_limit)(Handle, unsigned int*);
  int (*energy)(Handle, unsigned long long*);
  int (*temperature)(Handle, int, unsigned int*);
  int (*clock)(Handle, int, unsigned int*);
  int (*throttle)(Handle, unsigned long long*);
  int (*ecc)(Handle, int, int, unsigned long long*);
  int (*fan)(Handle, unsigned int*);
  int (*pcie_rate)(Handle, int, unsigned int*);
  int (*pcie_replays)(Handle, unsigned int*);
  int (*fields)(Handle, int, FieldValue*);
  int (*compute_processes)(Handle, unsigned int*, ProcessInfo*);
  int (*graphics_processes)(Handle, unsigned int*, ProcessInfo*);
  int (*event_set_create)(Handle*);
  int (*event_set_free)(Handle);
  int (*event_register)(Handle, unsigned long long, Handle);
  int (*event_wait)(Handle, EventData*, unsigned int);
};

// The functions that the library behind a dlopen handle has.
Api LoadApi(void* handle);

// The number in a field; missing if there is none.
double Number(const FieldValue& field);

}  // namespace sonde::collect::gpu::nvml
