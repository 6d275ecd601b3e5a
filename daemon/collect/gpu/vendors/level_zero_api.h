// What is used of Level Zero's Sysman, for Intel's GPUs: functions and structures as zes_api.h and
// ze_api.h declare them.
//
// Declared here because the headers come with the loader, which a build need not have. Layouts and
// values are parts of a stable interface: never change them. A structure's `type` must be set
// before it is passed.
//
// Thread safety: types.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::collect::gpu::ze {

using Handle = struct Opaque*;  // of drivers, devices and all their parts

// ze_result_t
enum Return : uint32_t {
  kSuccess = 0,
  kDeviceLost = 0x70000001,
  kRequiresReset = 0x70000006,
  kPermissions = 0x70010000,
  kNotAvailable = 0x70010001,
  kDependencyUnavailable = 0x70020000,
  kUninitialized = 0x78000001,
  kUnsupportedVersion = 0x78000002,
  kUnsupportedFeature = 0x78000003,
  kInvalidArgument = 0x78000004,
};

// zes_structure_type_t
enum Type : int {
  kDeviceProperties = 0x1,
  kPciProperties = 0x2,
  kEngineProperties = 0x5,
  kFrequencyProperties = 0x9,
  kMemoryProperties = 0xb,
  kPowerProperties = 0xd,
  kRasProperties = 0xf,
  kTemperatureProperties = 0x14,
  kProcessState = 0x16,
  kFrequencyState = 0x1b,
  kMemoryState = 0x1e,
  kRasState = 0x22,
};

inline constexpr int kDeviceGpu = 1;         // ze_device_type_t
inline constexpr uint32_t kIntel = 0x8086;   // PCI
inline constexpr uint32_t kInitGpuOnly = 1;  // of zeInit
inline constexpr int kLocationDevice = 1;    // zes_mem_loc_t
inline constexpr int kFrequencyGpu = 0;      // zes_freq_domain_t
inline constexpr int kFrequencyMemory = 1;
inline constexpr int kFrequencyMedia = 2;
inline constexpr int kSensorGlobal = 0;  // zes_temp_sensors_t: the highest of all
inline constexpr int kSensorGpu = 1;
inline constexpr int kSensorMemory = 2;
inline constexpr int kRasCorrectable = 0;  // zes_ras_error_type_t
inline constexpr int kRasUncorrectable = 1;
inline constexpr size_t kRasCategories = 7;
inline constexpr size_t kRasFirst = 3;  // compute, other logic, caches; not drivers and programs
inline constexpr size_t kRasLast = 5;

// zes_engine_group_t, what tells best how busy the device is in front.
inline constexpr int kEngineGroups[] = {0 /* all */, 1 /* all compute */, 11 /* 3D, compute */,
                                        4 /* a compute engine */, 5 /* a render engine */};

// zes_freq_throttle_reason_flag_t
inline constexpr uint32_t kThrottlePower = 0x203;
inline constexpr uint32_t kThrottleCurrent = 0x4;
inline constexpr uint32_t kThrottleThermal = 0x108;
inline constexpr uint32_t kThrottlePowerBrake = 0x10;  // an alert of the supply's

struct DeviceProperties {
  int type;
  void* next;
  struct {
    int type;
    void* next;
    int device_type;
    uint32_t vendor_id;
    uint32_t device_id;
    uint32_t flags;
    uint32_t subdevice_id;
    uint32_t core_clock_rate;
    uint64_t max_memory_allocation;
    uint32_t counts[7];
    uint64_t timer_resolution;
    uint32_t timestamp_bits[2];
    uint8_t uuid[16];
    char name[256];
  } core;
  uint32_t subdevices;
  char serial_number[64];
  char board_number[64];
  char brand_name[64];
  char model_name[64];
  char vendor_name[64];
  char driver_version[64];
};

struct PciSpeed {
  int32_t generation;
  int32_t width;
  int64_t max_bandwidth;
};
struct PciProperties {
  int type;
  void* next;
  uint32_t domain;
  uint32_t bus;
  uint32_t device;
  uint32_t function;
  PciSpeed max_speed;
  uint8_t have_bandwidth_counters;
  uint8_t have_packet_counters;
  uint8_t have_replay_counters;
};
struct PciStats {
  uint64_t timestamp;
  uint64_t replays;
  uint64_t packets;
  uint64_t received;  // bytes
  uint64_t transmitted;
  PciSpeed speed;
};

struct MemoryProperties {
  int type;
  void* next;
  int memory_type;
  uint8_t on_subdevice;
  uint32_t subdevice;
  int location;
  uint64_t physical_size;
  int32_t bus_width;
  int32_t channels;
};
struct MemoryState {
  int type;
  const void* next;
  int health;
  uint64_t free;  // bytes
  uint64_t size;
};

struct EnergyCounter {
  uint64_t energy;     // microjoules
  uint64_t timestamp;  // microseconds
};

struct PartProperties {  // those of engines and of sets of errors
  int type;
  void* next;
  int kind;
  uint8_t on_subdevice;
  uint32_t subdevice;
};
struct TemperatureProperties {
  int type;
  void* next;
  int kind;
  uint8_t on_subdevice;
  uint32_t subdevice;
  double max;
  uint8_t supported[3];
};
struct FrequencyProperties {
  int type;
  void* next;
  int kind;
  uint8_t on_subdevice;
  uint32_t subdevice;
  uint8_t can_control;
  uint8_t is_throttle_event_supported;
  double min;
  double max;
};
struct FrequencyState {
  int type;
  const void* next;
  double voltage;
  double request;
  double tdp;
  double efficient;
  double actual;  // MHz; negative if not known
  uint32_t throttle_reasons;
};
struct EngineStats {
  uint64_t active;     // microseconds
  uint64_t timestamp;  // microseconds
};
struct PortThroughput {
  uint64_t timestamp;
  uint64_t received;  // bytes
  uint64_t transmitted;
};
struct RasState {
  int type;
  const void* next;
  uint64_t category[kRasCategories];
};
struct ProcessState {
  int type;
  const void* next;
  uint32_t pid;
  uint64_t memory;  // bytes on the device
  uint64_t shared;
  uint32_t engines;
};

// Null: the library has no such function.
struct Api {
  using List = uint32_t (*)(Handle, uint32_t*, Handle*);

  uint32_t (*init)(uint32_t);     // zesInit
  uint32_t (*ze_init)(uint32_t);  // before there was zesInit (1.5): with ZES_ENABLE_SYSMAN=1
  uint32_t (*drivers)(uint32_t*, Handle*);
  List devices;
  uint32_t (*properties)(Handle, DeviceProperties*);
  uint32_t (*pci_properties)(Handle, PciProperties*);
  uint32_t (*pci_stats)(Handle, PciStats*);
  List memories;
  uint32_t (*memory_properties)(Handle, MemoryProperties*);
  uint32_t (*memory_state)(Handle, MemoryState*);
  uint32_t (*card_power)(Handle, Handle*);
  List powers;
  uint32_t (*energy)(Handle, EnergyCounter*);
  List temperatures;
  uint32_t (*temperature_properties)(Handle, TemperatureProperties*);
  uint32_t (*temperature)(Handle, double*);
  List frequencies;
  uint32_t (*frequency_properties)(Handle, FrequencyProperties*);
  uint32_t (*frequency)(Handle, FrequencyState*);
  List engines;
  uint32_t (*engine_properties)(Handle, PartProperties*);
  uint32_t (*activity)(Handle, EngineStats*);
  List ports;
  uint32_t (*throughput)(Handle, PortThroughput*);
  List errors;
  uint32_t (*error_properties)(Handle, PartProperties*);
  uint32_t (*error_state)(Handle, uint8_t, RasState*);
  uint32_t (*processes)(Handle, uint32_t*, ProcessState*);
};

// The functions that the library behind a dlopen handle has.
Api LoadApi(void* handle);

}  // namespace sonde::collect::gpu::ze
