// The metrics of the interposers, each declared once: the interposers register them, and
// list_metrics prints them, so that dashboards are made from the same words.
//
// Thread safety: constants.
#pragma once

#include "core/text/symbol_tags.h"

namespace sonde::interpose {

enum class CallType : unsigned char { kGauge, kCounter, kHistogram };

struct CallMetric {
  const char* name;
  const char* unit;
  CallType type;
  const char* help;
};

inline constexpr CallMetric kMpiCalls = {"mpi_calls_total", "1", CallType::kCounter,
                                         "Calls of MPI functions. Tags class, function."};
inline constexpr CallMetric kMpiSeconds = {"mpi_seconds_total", "seconds", CallType::kCounter,
                                           "Time spent in MPI functions. Tags class, function."};
inline constexpr CallMetric kMpiWaitSeconds = {
    "mpi_wait_seconds_total", "seconds", CallType::kCounter,
    "Time in functions that wait for other ranks: completion, probes, barriers, blocking "
    "receives. Tags class, function."};
inline constexpr CallMetric kMpiPeerWaitSeconds = {
    "mpi_peer_wait_seconds_total", "seconds", CallType::kCounter,
    "Time in blocking receives and probes from a named rank, by that rank, where a task waited for "
    "it for a tenth of its time. Tag peer: the rank in MPI_COMM_WORLD."};
inline constexpr CallMetric kMpiSentBytes = {
    "mpi_sent_bytes_total", "bytes", CallType::kCounter,
    "Bytes that MPI functions were given to send. Tags class, function."};
inline constexpr CallMetric kMpiReceivedBytes = {
    "mpi_received_bytes_total", "bytes", CallType::kCounter,
    "Bytes that MPI functions received, for a call that does not wait the bytes it has room for. "
    "Tags class, function."};
// Histograms have no tag function: each takes 20 KiB of each thread.
inline constexpr CallMetric kMpiMessageBytes = {
    "mpi_message_bytes", "bytes", CallType::kHistogram,
    "Sizes of what one call was given to send. Tag class."};
inline constexpr CallMetric kMpiIoWrittenBytes = {"mpi_io_written_bytes_total", "bytes",
                                                  CallType::kCounter,
                                                  "Bytes written by MPI-IO. Tags class, function."};
inline constexpr CallMetric kMpiIoReadBytes = {"mpi_io_read_bytes_total", "bytes",
                                               CallType::kCounter,
                                               "Bytes read by MPI-IO. Tags class, function."};
inline constexpr CallMetric kMpiIoWriteBytes = {"mpi_io_write_bytes", "bytes", CallType::kHistogram,
                                                "Sizes of MPI-IO's writes. Tag class."};
inline constexpr CallMetric kMpiTimeRatio = {
    "mpi_time_ratio", "1", CallType::kGauge,
    "Share of the time since MPI_Init that was spent in MPI, by the thread that called MPI_Init."};

inline constexpr CallMetric kIoCalls = {
    "io_calls_total", "1", CallType::kCounter,
    "Calls of functions for files. Tags api, fstype, mountpoint, operation."};
inline constexpr CallMetric kIoSeconds = {
    "io_seconds_total", "seconds", CallType::kCounter,
    "Time spent in them. Tags api, fstype, mountpoint, operation."};
inline constexpr CallMetric kIoReadBytes = {"io_read_bytes_total", "bytes", CallType::kCounter,
                                            "Bytes read from files. Tags api, fstype, mountpoint."};
inline constexpr CallMetric kIoWrittenBytes = {
    "io_written_bytes_total", "bytes", CallType::kCounter,
    "Bytes written to files. Tags api, fstype, mountpoint."};
inline constexpr CallMetric kIoSizeBytes = {
    "io_size_bytes", "bytes", CallType::kHistogram,
    "Bytes that one call moved. Tags api, fstype, mountpoint, operation."};

inline constexpr CallMetric kFunctionCallsMetric = {
    kFunctionCalls, "1", CallType::kCounter,
    "Calls of functions compiled with -finstrument-functions. Tags function, object."};
inline constexpr CallMetric kFunctionSecondsMetric = {
    kFunctionSeconds, "seconds", CallType::kCounter,
    "Time from the call of a function to its return, with all that it calls. Tags function, "
    "object."};

// All of them.
inline constexpr const CallMetric* kCallMetrics[] = {
    &kMpiCalls,           &kMpiSeconds,          &kMpiWaitSeconds,
    &kMpiPeerWaitSeconds, &kMpiSentBytes,        &kMpiReceivedBytes,
    &kMpiMessageBytes,    &kMpiIoWrittenBytes,   &kMpiIoReadBytes,
    &kMpiIoWriteBytes,    &kMpiTimeRatio,        &kIoCalls,
    &kIoSeconds,          &kIoReadBytes,         &kIoWrittenBytes,
    &kIoSizeBytes,        &kFunctionCallsMetric, &kFunctionSecondsMetric};

}  // namespace sonde::interpose
