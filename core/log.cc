#include "core/log.h"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace sonde::log {
namespace {

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// The file is made by us first, so that its mode does not depend on the umask.
Status MakePrivateFile(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return SystemError("open log file " + path);
  close(fd);
  return {};
}

}  // namespace

Status Open(std::string_view program, const std::string& path, Level level) {
  spdlog::sink_ptr sink;
  if (path.empty()) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    SONDE_RETURN_IF_ERROR(MakePrivateFile(path));
    try {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    } catch (const spdlog::spdlog_ex& e) {
      return {Code::kIo, e.what()};
    }
  }
  auto logger = std::make_shared<spdlog::logger>(std::string(program), std::move(sink));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %n[%P] %l: %v", spdlog::pattern_time_type::utc);
  logger->set_level(ToSpdlog(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

Result<Level> ParseLevel(std::string_view text) {
  if (text == "debug") return Level::kDebug;
  if (text == "info") return Level::kInfo;
  if (text == "warning") return Level::kWarning;
  if (text == "error") return Level::kError;
  return Status(Code::kInvalid,
                fmt::format("'{}' is no log level; expected debug, info, warning or "
                            "error",
                            text));
}

bool Enabled(Level level) { return spdlog::default_logger_raw()->should_log(ToSpdlog(level)); }

void Flush() { spdlog::default_logger_raw()->flush(); }

void Write(Level level, std::string_view line) {
  spdlog::default_logger_raw()->log(ToSpdlog(level),
                                    spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace sonde::log
