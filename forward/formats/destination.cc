#include "forward/formats/destination.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "core/text/hash.h"

namespace sonde::forward {
namespace {

std::string_view NextWord(std::string_view& text) {
  const size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  const size_t end = std::min(text.find_first_of(" \t", first), text.size());
  const std::string_view word = text.substr(first, end - first);
  text.remove_prefix(end);
  return word;
}

bool Take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// The protocol that the path and the query of a URL show.
bool GuessProtocol(std::string_view url, Protocol& out) {
  const size_t host = url.find("://") + 3;
  const size_t path_at = std::min(url.find('/', host), url.size());
  const size_t query_at = std::min(url.find('?', path_at), url.size());
  std::string_view path = url.substr(path_at, query_at - path_at);
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view query = url.substr(query_at);
  if (path.ends_with("/api/put")) return out = Protocol::kOpenTsdb, true;
  if (path.ends_with("/api/v2/write") || query.find("db=") != std::string_view::npos) {
    return out = Protocol::kInflux, true;
  }
  if (path.ends_with("/api/v1/write") || path.ends_with("/api/v1/push") ||
      path.ends_with("/receive")) {
    return out = Protocol::kPrometheus, true;
  }
  return false;
}

struct FileFormat {
  Protocol protocol;
  std::string_view prefix;
  std::string_view suffix;
};
constexpr FileFormat kFileFormats[] = {
    {Protocol::kOpenMetrics, "openmetrics:", ".om"}, {Protocol::kCsv, "csv:", ".csv"},
    {Protocol::kJsonLines, "jsonl:", ".jsonl"},      {Protocol::kTrace, "trace:", ".trace.json"},
    {Protocol::kProfile, "profile:", ".sonde"},
};

// False if the text is not a file's.
bool SetFile(std::string_view text, Destination& out) {
  out.protocol = Protocol::kOpenMetrics;
  bool file = text == "-" || Take(text, "file:");
  for (const FileFormat& format : kFileFormats) {
    if (file || (!Take(text, format.prefix) && !text.ends_with(format.suffix))) continue;
    out.protocol = format.protocol;
    file = true;
  }
  out.url = text;
  return file;
}

Status SetUrl(std::string_view text, Destination& out) {
  if (text.find("://") == std::string_view::npos && SetFile(text, out)) {
    if (out.url.empty()) return {Code::kInvalid, "expected a path after the colon"};
    return {};
  }
  const bool known = Take(text, "prometheus+") ? (out.protocol = Protocol::kPrometheus, true)
                     : Take(text, "influx+")   ? (out.protocol = Protocol::kInflux, true)
                     : Take(text, "opentsdb+") ? (out.protocol = Protocol::kOpenTsdb, true)
                                               : false;
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!plain || (!text.starts_with("http://") && !text.starts_with("https://"))) {
    return {Code::kInvalid,
            "expected a URL that begins with http:// or https://, perhaps after prometheus+, "
            "influx+ or opentsdb+, or a file: FILE.om, FILE.csv, FILE.jsonl, FILE.trace.json, "
            "FILE.sonde, or openmetrics:, csv:, jsonl:, trace: or profile: before its path"};
  }
  const std::string_view rest = text.substr(text.find("://") + 3);
  if (rest.substr(0, rest.find_first_of("/?#")).find('@') != std::string_view::npos) {
    return {Code::kInvalid,
            "expected no user or password in the URL, which others can read: use password_file="};
  }
  if (!known && !GuessProtocol(text, out.protocol)) {
    return {Code::kInvalid,
            "expected prometheus+, influx+ or opentsdb+ before the URL, whose path does not tell "
            "which it is (/api/v1/write, /write?db=NAME, /api/v2/write, /api/put)"};
  }
  out.url = text;
  // Only with this the answer says which points it refuses.
  if (out.protocol == Protocol::kOpenTsdb && text.find("details") == std::string_view::npos) {
    out.url += text.find('?') == std::string_view::npos ? "?details" : "&details";
  }
  return {};
}

Status SetGlobs(std::string_view text, std::vector<std::string>& out) {
  out.clear();
  while (true) {
    const std::string_view glob = text.substr(0, text.find(','));
    if (glob.empty() || glob == "!") {
      return {Code::kInvalid, "expected names with * and ?, between commas"};
    }
    out.emplace_back(glob);
    if (glob.size() == text.size()) return {};
    text.remove_prefix(glob.size() + 1);
  }
}

Status SetStep(std::string_view text, Nanos& out) {
  const Result<Nanos> step = ParseDuration(text);
  if (!step.ok()) return step.status();
  if (*step <= 0) return {Code::kInvalid, "expected a time such as 10s"};
  out = *step;
  return {};
}

Status SetBatch(std::string_view text, Destination& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.batch);
  if (error == std::errc() && end == text.data() + text.size() && out.batch >= 1 &&
      out.batch <= kMaxBatch) {
    return {};
  }
  return {Code::kInvalid, fmt::format("expected a whole number from 1 to {}", kMaxBatch)};
}

Status SetPath(std::string_view text, std::string& out) {
  if (!text.starts_with('/')) return {Code::kInvalid, "expected an absolute path"};
  out = text;
  return {};
}

Status SetOption(std::string_view key, std::string_view value, Destination& out) {
  if (key == "scope") {
    if (value != "job" && value != "node") return {Code::kInvalid, "expected job or node"};
    out.scope = value == "job" ? SeriesScope::kReduced : SeriesScope::kNodes;
    return {};
  }
  if (key == "metrics") return SetGlobs(value, out.metrics);
  if (key == "node") {
    out.scope = SeriesScope::kNodes;
    return SetGlobs(value, out.nodes);
  }
  if (key == "step") return SetStep(value, out.step);
  if (key == "batch") return SetBatch(value, out);
  if (key == "token_file") return SetPath(value, out.token_file);
  if (key == "password_file") return SetPath(value, out.password_file);
  if (key == "ca_file") return SetPath(value, out.ca_file);
  if (Take(key, "label.")) {
    SONDE_RETURN_IF_ERROR(CheckTag(key, value));
    if (out.labels.pairs().size() >= kMaxTags) {
      return {Code::kInvalid, fmt::format("expected at most {} labels", kMaxTags)};
    }
    out.labels.Set(key, value);
    return {};
  }
  return {Code::kInvalid,
          "expected scope=, metrics=, node=, step=, token_file=, password_file=, ca_file=, batch= "
          "or label.NAME="};
}

}  // namespace

// How samples are sent (batch, secrets) makes no difference; written to disk: never to change.
std::string Destination::Id() const {
  std::string text = fmt::format("{} {} {}", static_cast<int>(protocol), url,
                                 scope == SeriesScope::kNodes ? "node" : "job");
  for (const std::string& glob : metrics) text += " " + glob;
  for (const auto& [key, value] : labels.pairs()) text += fmt::format(" {}={}", key, value);
  for (const std::string& glob : nodes) text += " node=" + glob;
  if (since != 0 || until != INT64_MAX) text += fmt::format(" {}-{}", since, until);
  return fmt::format("{:016x}", Fnv1a64(text));
}

std::string_view SuffixOf(Protocol protocol) {
  for (const FileFormat& format : kFileFormats) {
    if (format.protocol == protocol) return format.suffix;
  }
  return "";
}

std::string_view PrefixOf(Protocol protocol) {
  for (const FileFormat& format : kFileFormats) {
    if (format.protocol == protocol) return format.prefix;
  }
  return "";
}

Result<Destination> ParseDestination(std::string_view text) {
  const std::string_view url = NextWord(text);
  return ParseDestination(url, text);
}

Result<Destination> ParseDestination(std::string_view url, std::string_view options) {
  Destination out;
  SONDE_RETURN_IF_ERROR(SetUrl(url, out).Within(fmt::format("destination '{}'", url)));
  if (out.protocol == Protocol::kOpenTsdb) out.batch = 1000;
  for (std::string_view word = NextWord(options); !word.empty(); word = NextWord(options)) {
    const size_t eq = std::min(word.find('='), word.size());
    const std::string_view value = eq < word.size() ? word.substr(eq + 1) : std::string_view();
    SONDE_RETURN_IF_ERROR(SetOption(word.substr(0, eq), value, out).Within(word));
  }
  if (!out.token_file.empty() && !out.password_file.empty()) {
    return Status(Code::kInvalid, "expected token_file= or password_file=, not both");
  }
  if (out.step != 0 && !IsTable(out.protocol)) {
    return Status(Code::kInvalid, "step= is for CSV, JSON lines and traces");
  }
  if (!out.nodes.empty() && out.scope != SeriesScope::kNodes) {
    return Status(Code::kInvalid, "node= goes with scope=node, not with scope=job");
  }
  return out;
}

bool MatchesGlob(std::string_view glob, std::string_view text) {
  size_t g = 0, t = 0, star = std::string_view::npos, back = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      back = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++back;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

namespace {

bool Picks(const std::vector<std::string>& globs, std::string_view name) {
  bool any = false;
  bool in = false;
  for (std::string_view glob : globs) {
    const bool out = Take(glob, "!");
    any = any || !out;
    if (!MatchesGlob(glob, name)) continue;
    if (out) return false;
    in = true;
  }
  return in || !any;
}

}  // namespace

bool Wants(const Destination& destination, std::string_view metric) {
  return Picks(destination.metrics, metric);
}

bool WantsHost(const Destination& destination, std::string_view host) {
  return Picks(destination.nodes, host);
}

Result<std::string> ReadSecret(const std::string& path) {
  if (path.empty()) return std::string();
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError("open " + path);
  struct stat info {};
  char text[4097];
  const bool known = fstat(fd, &info) == 0;
  const ssize_t n = known && S_ISREG(info.st_mode) ? read(fd, text, sizeof text) : -1;
  close(fd);
  if (n < 0) return Status(Code::kInvalid, path + " is no file that can be read");
  if ((info.st_mode & 027) != 0) {
    return Status(Code::kPermission,
                  path + " holds a secret and others may read it or change it: chmod o-rwx,g-w");
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return Status(Code::kPermission, path + " belongs to another user");
  }
  std::string_view line(text, static_cast<size_t>(n));
  line = line.substr(0, line.find_first_of("\r\n"));
  const bool plain =
      std::all_of(line.begin(), line.end(), [](char c) { return c >= 0x20 && c != 0x7f; });
  if (line.empty() || line.size() > 4096 || !plain) {
    return Status(Code::kInvalid, path + ": expected one line of at most 4096 characters");
  }
  return std::string(line);
}

}  // namespace sonde::forward
