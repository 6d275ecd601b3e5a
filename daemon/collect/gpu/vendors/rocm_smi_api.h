// What is used of ROCm SMI, AMD's library: its functions and structures as rocm_smi.h declares
// them.
//
// Declared here because rocm_smi.h comes with ROCm, which a build need not have. All of this is the
// same from the library's version 5 (ROCm 5) to 7; what differs is not used: the structure of
// clocks that can be chosen. Never change layouts and values.
//
// Thread safety: types.
#pragma once

#include <cstdint>

namespace sonde::collect::gpu::rocm {

// rsmi_status_t
enum Return : uint32_t {
  kSuccess = 0,
  kInvalidArguments = 1,
  kNotSupported = 2,
  kPermission = 4,
  kInitError = 8,
  kNotYetImplemented = 9,
  kNotFound = 10,
  kInsufficientSize = 11,
  kNoData = 14,
};

// The library's locks stay in this process. Without it, it leaves files in /dev/shm.
inline constexpr uint64_t kInitThreadOnlyMutex = 0x400000000000000;

inline constexpr uint32_t kMemoryVram = 0;       // rsmi_memory_type_t
inline constexpr uint32_t kTemperatureEdge = 0;  // rsmi_temperature_type_t
inline constexpr uint32_t kTemperatureJunction = 1;
inline constexpr uint32_t kTemperatureMemory = 2;
inline constexpr int kTemperatureCurrent = 0;  // rsmi_temperature_metric_t
inline constexpr int kMaxFanSpeed = 255;
inline constexpr uint64_t kFirstBlock = 0x1;  // rsmi_gpu_block_t, a bit for each part of the chip
inline constexpr uint64_t kLastBlock = 0x2000;

// Bits of indep_throttle_status, as the kernel's amdgpu_smu.h groups them: limits of power,
// of current, of temperature.
inline constexpr uint64_t kThrottlePower = 0x000000000000ffff;
inline constexpr uint64_t kThrottleCurrent = 0x00000000ffff0000;
inline constexpr uint64_t kThrottleThermal = 0x00ffffff00000000;

struct ErrorCount {
  uint64_t correctable;
  uint64_t uncorrectable;
};

struct ProcessInfo {
  uint32_t pid;
  uint32_t pasid;
  uint64_t vram_usage;  // bytes
  uint64_t sdma_usage;
  uint32_t cu_occupancy;
  // Newer versions may add more.
  uint32_t reserved[25];
};
// As they lie in an array, in all versions.
struct ListedProcess {
  uint32_t pid;
  uint32_t pasid;
  uint64_t vram_usage;
  uint64_t sdma_usage;
  uint32_t cu_occupancy;
};

inline constexpr size_t kMaxXgmiLinks = 8;

// rsmi_gpu_metrics_t, as far as it is used; the library's own may be longer or end earlier. What it
// does not know has all bits set.
struct Metrics {
  uint16_t structure_size;
  uint8_t format_revision;
  uint8_t content_revision;
  uint16_t temperature[6];
  uint16_t average_activity[3];
  uint16_t average_socket_power;
  uint64_t energy_accumulator;
  uint64_t system_clock_counter;
  uint16_t average_frequency[7];
  uint16_t current_gfxclk;  // MHz
  uint16_t current_socclk;
  uint16_t current_uclk;
  uint16_t current_vclk0;
  uint16_t current_dclk0;
  uint16_t current_vclk1;
  uint16_t current_dclk1;
  uint32_t throttle_status;
  uint16_t current_fan_speed;
  uint16_t pcie_link_width;
  uint16_t pcie_link_speed;
  uint32_t gfx_activity_acc;
  uint32_t mem_activity_acc;
  uint16_t temperature_hbm[4];
  uint64_t firmware_timestamp;
  uint16_t voltage[3];
  uint64_t indep_throttle_status;
  uint16_t current_socket_power;
  uint16_t vcn_activity[4];
  uint32_t gfxclk_lock_status;
  uint16_t xgmi_link_width;
  uint16_t xgmi_link_speed;
  uint64_t pcie_bandwidth_acc;
  uint64_t pcie_bandwidth_inst;
  uint64_t pcie_l0_to_recov_count_acc;
  uint64_t pcie_replay_count_acc;
  uint64_t pcie_replay_rover_count_acc;
  uint64_t xgmi_read_data_acc[kMaxXgmiLinks];  // KB
  uint64_t xgmi_write_data_acc[kMaxXgmiLinks];
};
// Room for whatever a version of the library writes.
union MetricsBuffer {
  Metrics metrics;
  unsigned char bytes[8192];
};

// Null: the library has no such function. `device` is the library's number of it.
struct Api {
  uint32_t (*init)(uint64_t);
  uint32_t (*shut_down)();
  uint32_t (*status_string)(uint32_t, const char**);
  uint32_t (*count)(uint32_t*);
  uint32_t (*pci_id)(uint32_t, uint64_t*);
  uint32_t (*unique_id)(uint32_t, uint64_t*);
  uint32_t (*name)(uint32_t, char*, size_t);
  uint32_t (*busy)(uint32_t, uint32_t*);         // percent
  uint32_t (*memory_busy)(uint32_t, uint32_t*);  // percent
  uint32_t (*memory_used)(uint32_t, uint32_t, uint64_t*);
  uint32_t (*memory_total)(uint32_t, uint32_t, uint64_t*);
  uint32_t (*power)(uint32_t, uint64_t*, int*);                // microwatts
  uint32_t (*average_power)(uint32_t, uint32_t, uint64_t*);    // microwatts
  uint32_t (*power_cap)(uint32_t, uint32_t, uint64_t*);        // microwatts
  uint32_t (*energy)(uint32_t, uint64_t*, float*, uint64_t*);  // * the resolution in microjoules
  uint32_t (*temperature)(uint32_t, uint32_t, int, int64_t*);  // thousandths of a degree
  uint32_t (*fan)(uint32_t, uint32_t, int64_t*);
  uint32_t (*pcie_replays)(uint32_t, uint64_t*);
  uint32_t (*ecc_enabled)(uint32_t, uint64_t*);
  uint32_t (*ecc)(uint32_t, uint64_t, ErrorCount*);
  uint32_t (*metrics)(uint32_t, MetricsBuffer*);
  uint32_t (*processes)(ListedProcess*, uint32_t*);
  uint32_t (*process_on_device)(uint32_t, uint32_t, ProcessInfo*);
};

}  // namespace sonde::collect::gpu::rocm
