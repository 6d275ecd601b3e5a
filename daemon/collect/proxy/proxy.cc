#include "daemon/collect/proxy/proxy.h"

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <new>
#include <utility>

#include "core/log.h"
#include "core/text/printable.h"
#include "daemon/collect/proxy/series_name.h"
#include "daemon/collect/read/parse.h"

namespace sonde::collect {
namespace {

constexpr std::string_view kTask = "task";

size_t TextSize(const Series& series) {
  size_t size = series.metric.name.size() + series.metric.help.size();
  for (const auto& [key, value] : series.tags.pairs()) size += key.size() + value.size();
  return size;
}

// What a metric is besides its name and tags.
void Declare(const ProxyMessage& message, Metric& metric) {
  constexpr size_t kDots = 3;  // that OneLine adds
  metric.type = message.type;
  metric.help = OneLine(message.help, kMaxTextLength - kDots);
  metric.reduction = metric.type == MetricType::kCounter ? Reduction::kSum : Reduction::kMean;
}

}  // namespace

Result<std::unique_ptr<ProxySource>> ProxySource::Open(Options options, SocketFile listener) {
  std::unique_ptr<ProxySource> source(new ProxySource(std::move(options)));
  SONDE_RETURN_IF_ERROR(source->door_.Open(std::move(listener)));
  return source;
}

ProxySource::ProxySource(Options options)
    : options_(std::move(options)),
      door_(options_, [this](ProxyProgram& program, std::string_view message) {
        return Take(program, message);
      }) {}

void ProxySource::Sample(Nanos /*now*/) {
  door_.Retry();
  if (const std::string why = door_.TakeLeftOut(); !why.empty()) LeaveOut(why);
}

void ProxySource::Poll() {
  try {
    door_.Poll();
  } catch (const std::bad_alloc&) {
    LeaveOut("the daemon is out of memory");
  }
}

void ProxySource::Close() {
  try {
    door_.ReadRest();
  } catch (const std::bad_alloc&) {
    LeaveOut("the daemon is out of memory");
  }
  door_.Close();
}

void ProxySource::AddTask(uint32_t rank, pid_t pid) { tasks_[pid] = rank; }

int ProxySource::RankOf(const ProxyProgram& program) const {
  if (program.rank >= 0) return program.rank;
  const auto task = tasks_.find(program.pid);
  if (task != tasks_.end()) return static_cast<int>(task->second);
  return tasks_.size() == 1 ? static_cast<int>(tasks_.begin()->second) : 0;
}

Status ProxySource::Take(ProxyProgram& program, std::string_view bytes) {
  SONDE_RETURN_IF_ERROR(DecodeProxyMessage(bytes, message_));
  if (message_.kind != ProxyMessage::Kind::kOther) Record(RankOf(program));
  return {};
}

// A value that comes without its metric counts, too: it says which type the metric is of.
void ProxySource::Record(int rank) {
  const std::optional<size_t> column = Column(rank);
  if (!column || message_.kind != ProxyMessage::Kind::kValue) return;
  double& value = values_[*column];
  if (message_.type == MetricType::kGauge) {
    if (std::isfinite(message_.value)) value = message_.value;
  } else if (const double sum = value + message_.value; message_.value > 0 && std::isfinite(sum)) {
    value = sum;
  }
}

// The column of the message's metric, made now if there is none; nothing if it cannot have one.
std::optional<size_t> ProxySource::Column(int rank) {
  Columns& known = ranks_[rank];
  std::optional<size_t> column;
  if (const auto found = known.find(message_.name); found != known.end()) {
    column = found->second;
  } else if (message_.name.size() > options_.max_name) {
    LeaveOut(fmt::format("a name has {} bytes", message_.name.size()));
  } else {
    Series series = ProxySeries(message_.name);
    Declare(message_, series.metric);
    series.tags.Set(kTask, std::to_string(rank));
    column = AddColumn(std::move(series), known);
  }
  if (!column || series_[*column].metric.type == message_.type) return column;
  LeaveOut(fmt::format("{} is a counter and a gauge",
                       SeriesName(series_[*column].metric.name, series_[*column].tags)));
  return std::nullopt;
}

std::optional<size_t> ProxySource::AddColumn(Series series, Columns& known) {
  std::string name = SeriesName(series.metric.name, series.tags);
  const auto same = columns_.find(name);  // its labels have another order
  const size_t text = message_.name.size() + (same == columns_.end() ? TextSize(series) : 0);
  if (series_.size() >= options_.max_metrics || text_ + text > options_.max_text) {
    LeaveOut(fmt::format("there are {} series with {} bytes of text; more are not recorded",
                         series_.size(), text_));
    return std::nullopt;
  }
  text_ += text;
  if (same != columns_.end()) return known.emplace(message_.name, same->second).first->second;
  const size_t column = series_.size();
  // Should memory run out half way, series and values still have one length.
  if (values_.size() == values_.capacity()) values_.reserve(2 * values_.size() + 16);
  const double start = series.metric.type == MetricType::kCounter ? 0 : kMissing;
  series_.push_back(std::move(series));
  values_.push_back(start);
  ++generation_;
  columns_.emplace(std::move(name), column);
  known.emplace(message_.name, column);
  return column;
}

void ProxySource::LeaveOut(const std::string& why) {
  ++left_out_;
  if (std::exchange(said_left_out_, true)) return;
  log::Warning("programs for metric-proxy: {}", why);
  notes_.push_back("metrics of programs for metric-proxy are missing: " + why);
}

}  // namespace sonde::collect
