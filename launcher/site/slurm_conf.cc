#include "launcher/site/slurm_conf.h"

#include <unistd.h>

#include <cctype>
#include <climits>
#include <cstddef>
#include <vector>

#include "core/text/ascii.h"
#include "launcher/read_file.h"

namespace sonde::launch {
namespace {

// Of files within files, and of all together: a file may include itself.
constexpr int kMostDepth = 8;
constexpr int kMostFiles = 64;
constexpr size_t kMostMib = 16;  // of one file

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

size_t SkipBlanks(std::string_view text, size_t at) {
  while (at < text.size() && IsBlank(text[at])) ++at;
  return at;
}

size_t SkipWord(std::string_view text, size_t at) {
  while (at < text.size() && !IsBlank(text[at])) ++at;
  return at;
}

// The next line with those that it goes on in, without its comment; `text` loses it.
std::string TakeLine(std::string_view& text) {
  std::string line;
  for (bool more = true; more && !text.empty();) {
    const size_t eol = text.find('\n');
    std::string_view part = text.substr(0, eol);
    text.remove_prefix(eol == std::string_view::npos ? text.size() : eol + 1);
    if (part.ends_with('\r')) part.remove_suffix(1);
    more = part.ends_with('\\');
    if (more) part.remove_suffix(1);
    line += part;
  }
  // "\#" is no comment to Slurm.
  for (size_t at = line.find('#'); at != std::string::npos; at = line.find('#', at + 1)) {
    if (at > 0 && line[at - 1] == '\\') continue;
    line.resize(at);
    break;
  }
  return line;
}

// PREFIX of a program PREFIX/bin/srun or PREFIX/sbin/slurmstepd; "" if it is not known.
std::string Prefix(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(link.c_str(), target, sizeof(target));
  const std::string_view path(target, size < 0 ? 0 : static_cast<size_t>(size));
  const std::string_view directory = path.substr(0, path.rfind('/') + 1);
  if (directory.size() < 2) return "";
  return std::string(directory.substr(0, directory.rfind('/', directory.size() - 2)));
}

class Reader {
 public:
  Reader(const std::string& path, const ReadConf& read, const OnSlurmLine& on_line)
      : read_(read), on_line_(on_line), directory_(path.substr(0, path.rfind('/') + 1)) {}

  void ReadFile(const std::string& path, int depth) {
    if (depth > kMostDepth || files_ == kMostFiles) return Miss(TooMany(path, depth));
    ++files_;
    const Result<std::string> text = read_(path);
    if (!text.ok()) return Miss(text.status());
    for (std::string_view left = *text; !left.empty();) OnLine(TakeLine(left), depth);
  }

  // Why something is missing.
  const Status& status() const { return status_; }

 private:
  static Status TooMany(const std::string& path, int depth) {
    if (depth <= kMostDepth) {
      return {Code::kLimit,
              "include " + path + ": more than " + std::to_string(kMostFiles) + " files"};
    }
    return {Code::kLimit, "include " + path + ": more than " + std::to_string(kMostDepth) +
                              " files, each of which includes the next"};
  }

  void Miss(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  void OnLine(std::string_view line, int depth) {
    size_t at = SkipBlanks(line, 0);
    const size_t end = SkipWord(line, at);
    if (EqualsIgnoringCase(line.substr(at, end - at), "include")) {
      const size_t name = SkipBlanks(line, end);
      return Include(line.substr(name, SkipWord(line, name) - name), depth);
    }
    settings_.clear();
    while (at < line.size()) at = OnSetting(line, at);
    if (!settings_.empty()) on_line_(settings_);
  }

  // Name, an operator perhaps, '=', a value that may stand in quotes; gives what follows, the end
  // where it is something else.
  size_t OnSetting(std::string_view line, size_t at) {
    const size_t name = at = SkipBlanks(line, at);
    while (at < line.size() && (std::isalnum(static_cast<unsigned char>(line[at])) != 0 ||
                                line[at] == '_' || line[at] == '.')) {
      ++at;
    }
    const std::string_view key = line.substr(name, at - name);
    at = SkipBlanks(line, at);
    if (at < line.size() && std::string_view("-*+/").find(line[at]) != std::string_view::npos) ++at;
    if (key.empty() || at >= line.size() || line[at] != '=') return line.size();
    at = SkipBlanks(line, at + 1);
    if (at < line.size() && line[at] == '"') {
      const size_t quote = line.find('"', at + 1);
      if (quote == std::string_view::npos) return line.size();
      Set(key, line.substr(at + 1, quote - at - 1));
      return quote + 1;
    }
    const size_t end = SkipWord(line, at);
    Set(key, line.substr(at, end - at));
    return end;
  }

  void Set(std::string_view name, std::string_view value) {
    settings_.emplace_back(name, value);
    if (EqualsIgnoringCase(name, "ClusterName")) cluster_ = Lower(value);
  }

  void Include(std::string_view name, int depth) {
    std::string path(name);
    for (size_t at = 0; (at = path.find("%c", at)) != std::string::npos; at += cluster_.size()) {
      path.replace(at, 2, cluster_);
    }
    if (path.empty()) return;
    ReadFile(path.front() == '/' ? path : directory_ + path, depth + 1);
  }

  const ReadConf& read_;
  const OnSlurmLine& on_line_;
  const std::string directory_;
  int files_ = 0;
  Status status_;
  std::string cluster_;
  std::vector<SlurmSetting> settings_;  // of the line
};

// "socket=PATH", between commas with others.
std::string SocketIn(std::string_view info) {
  constexpr std::string_view kSocket = "socket=";
  const size_t at = info.find(kSocket);
  if (at == std::string_view::npos) return "";
  info.remove_prefix(at + kSocket.size());
  return std::string(info.substr(0, info.find(',')));
}

}  // namespace

Result<std::string> ReadSlurmConfFile(const std::string& path) { return ReadFile(path, kMostMib); }

Status ReadSlurmConf(const std::string& path, const ReadConf& read, const OnSlurmLine& on_line) {
  Reader reader(path, read, on_line);
  reader.ReadFile(path, 0);
  return reader.status();
}

std::string FindSlurmConf(const Environment& environment, const std::string& program) {
  const std::string given(environment.First("SLURM_CONF"));
  if (!given.empty()) return given;
  // Slurm's own place is known to those who built it, and is below its prefix unless they said
  // more.
  const std::string etc = Prefix(program) + "/etc";
  for (const std::string& path :
       {etc + "/slurm.conf", etc + "/slurm/slurm.conf", std::string("/etc/slurm/slurm.conf"),
        std::string("/run/slurm/conf/slurm.conf")}) {
    if (::access(path.c_str(), R_OK) == 0) return path;
  }
  return "";
}

bool IsSlurmSetting(const SlurmSetting& setting, std::string_view name) {
  return EqualsIgnoringCase(setting.first, name);
}

void SlurmNetworkLines::Take(SlurmLine line) {
  for (const SlurmSetting& setting : line) {
    const auto has = [&](const char* word) {
      return Lower(setting.second).find(word) != std::string::npos;
    };
    if (IsSlurmSetting(setting, "SrunPortRange")) {
      network_.srun_ports = ParsePortRange(setting.second);
    } else if (IsSlurmSetting(setting, "CommunicationParameters")) {
      network_.ipv6 = has("enableipv6");
      network_.ipv4 = !has("disableipv4");
      communication_ = has("noinaddrany");
    } else if (IsSlurmSetting(setting, "AuthInfo")) {
      network_.munge_socket = SocketIn(setting.second);
    } else if (IsSlurmSetting(setting, "SlurmdUser")) {
      // "NAME(UID)", as Slurm itself shows it.
      network_.slurmd_user = setting.second.substr(0, setting.second.find('('));
    } else if (IsSlurmSetting(setting, "TopologyParam")) {
      topology_ = has("noinaddrany");
    }
  }
  network_.all_addresses = !communication_ && !topology_;
}

SlurmNetwork ReadSlurmNetwork(const std::string& path, const ReadConf& read) {
  SlurmNetworkLines lines;
  static_cast<void>(ReadSlurmConf(path, read, [&](SlurmLine line) { lines.Take(line); }));
  return lines.network();
}

SlurmNetwork ReadSlurmNetwork(const Environment& environment) {
  const std::string path = FindSlurmConf(environment);
  if (path.empty()) return {};
  return ReadSlurmNetwork(path, ReadSlurmConfFile);
}

}  // namespace sonde::launch
