#include "daemon/head/answers/exporters.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/log.h"
#include "core/text/hostlist.h"

namespace sonde::head {
namespace {

using State = web::Exporter::State;
using tree::JoinedMessage;
using tree::Type;

constexpr size_t kMaxFailures = 8;  // that one answer tells

State StateOf(uint32_t state) {
  switch (state) {
    case JoinedMessage::kUp:
      return State::kUp;
    case JoinedMessage::kDown:
      return State::kDown;
    default:
      return State::kFailed;
  }
}

}  // namespace

Exporters::~Exporters() {
  for (const Waiting& waiting : waiting_) loop_.Cancel(waiting.timer);
}

void Exporters::Join(const std::vector<uint32_t>& nodes, const web::ScrapeTarget& target,
                     web::StepControl::JoinCallback done) {
  const std::string url = target.Url();
  const std::string text = web::EncodeScrape(target);
  const auto waiting = waiting_.insert(
      waiting_.end(), {url, {nodes.begin(), nodes.end()}, {}, {}, std::move(done), {}});
  waiting->timer = loop_.After(web::StepControl::kJoinPatience, [this, waiting] {
    for (const uint32_t node : std::exchange(waiting->pending, {})) {
      waiting->failed.push_back(fmt::format("{}: it has not told yet", host_(node)));
    }
    Finish(waiting);
  });
  for (const uint32_t node : nodes) {
    if (!exporters_.contains({node, url}) && !MakeRoom(node)) {
      Heard(node, url, false,
            fmt::format("it has {} exporters already; /disconnect one", kMaxOfNode));
      continue;
    }
    web::Exporter& exporter = exporters_[{node, url}].exporter;
    exporter.host = host_(node);
    exporter.target = target;
    if (exporter.state == State::kFailed) exporter.state = State::kStarting;
    if (!send_(node, Type::kJoin, text)) {
      exporters_.erase({node, url});
      Heard(node, url, false, "no connection to the node");
    }
  }
}

Status Exporters::Unjoin(const std::string& instance) {
  std::vector<Key> found;
  for (const auto& [key, known] : exporters_) {
    if (known.exporter.target.Instance() == instance) found.push_back(key);
  }
  for (const Key& key : found) {
    const auto known = exporters_.find(key);
    send_(key.first, Type::kUnjoin, web::EncodeScrape(known->second.exporter.target));
    exporters_.erase(known);
  }
  for (const auto& [node, url] : found) Heard(node, url, false, "it was disconnected");
  if (!found.empty()) return {};
  return {Code::kNotFound, fmt::format("no exporter {} is scraped", instance)};
}

std::vector<web::Exporter> Exporters::List() const {
  std::vector<web::Exporter> all;
  all.reserve(exporters_.size());
  for (const auto& [key, known] : exporters_) {
    all.push_back(known.exporter);
    if (known.exporter.state == State::kUp) all.back().last_scrape = clock_.Now();
  }
  return all;
}

void Exporters::OnJoined(uint32_t node, std::string_view payload) {
  JoinedMessage said;
  if (const Status read = Decode(payload, said); !read.ok()) {
    return log::Warning("from node {}: {}", node, read.message());
  }
  const Result<web::ScrapeTarget> target = web::DecodeScrape(said.target);
  if (!target.ok()) return log::Warning("from node {}: {}", node, target.status().message());
  const Key key(node, target->Url());
  auto known = exporters_.find(key);
  if (said.state == JoinedMessage::kGone) {
    // One that is wanted again meanwhile will be scraped.
    const bool wanted =
        known != exporters_.end() && known->second.exporter.state == State::kStarting;
    if (known != exporters_.end() && !wanted) exporters_.erase(known);
    return;
  }
  if (known == exporters_.end()) {
    // Another head had it joined.
    if (!MakeRoom(node)) return;
    known = exporters_.try_emplace(key).first;
    known->second.exporter.host = host_(node);
    known->second.exporter.target = *target;
  }
  web::Exporter& exporter = known->second.exporter;
  if (exporter.state == State::kUp) exporter.last_scrape = clock_.Now();
  exporter.state = StateOf(said.state);
  exporter.kind = said.kind;
  exporter.url = said.url;
  exporter.why = exporter.state == State::kUp ? "" : said.why;
  if (exporter.state == State::kFailed) known->second.failed = ++failures_;
  Heard(node, key.second, exporter.state != State::kFailed, said.why);
}

void Exporters::OnGone(uint32_t node) {
  const auto [first, last] = OfNode(node);
  std::vector<std::string> urls;
  for (auto it = first; it != last; ++it) urls.push_back(it->first.second);
  exporters_.erase(first, last);
  for (const std::string& url : urls) Heard(node, url, false, "the node has ended");
}

std::pair<Exporters::Map::iterator, Exporters::Map::iterator> Exporters::OfNode(uint32_t node) {
  return {exporters_.lower_bound({node, ""}), exporters_.lower_bound({node + 1, ""})};
}

bool Exporters::MakeRoom(uint32_t node) {
  const auto [first, last] = OfNode(node);
  if (static_cast<size_t>(std::distance(first, last)) < kMaxOfNode) return true;
  auto oldest = last;
  for (auto it = first; it != last; ++it) {
    if (it->second.exporter.state != State::kFailed) continue;
    if (oldest == last || it->second.failed < oldest->second.failed) oldest = it;
  }
  if (oldest == last) return false;
  exporters_.erase(oldest);
  return true;
}

void Exporters::Heard(uint32_t node, const std::string& url, bool scraping,
                      const std::string& why) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto waiting = it++;
    if (waiting->url != url || waiting->pending.erase(node) == 0) continue;
    if (scraping) {
      waiting->scraping.push_back(host_(node));
    } else {
      waiting->failed.push_back(fmt::format("{}: {}", host_(node), why));
    }
    if (waiting->pending.empty()) Finish(waiting);
  }
}

void Exporters::Finish(std::list<Waiting>::iterator waiting) {
  loop_.Cancel(waiting->timer);
  Waiting finished = std::move(*waiting);
  waiting_.erase(waiting);
  std::vector<std::string>& failed = finished.failed;
  if (failed.size() > kMaxFailures) {
    const size_t more = failed.size() - kMaxFailures;
    failed.resize(kMaxFailures);
    failed.push_back(fmt::format("and {} more", more));
  }
  const std::string why = fmt::format("{}", fmt::join(failed, "; "));
  if (finished.scraping.empty()) return finished.done(Status(Code::kUnavailable, why));
  finished.done(web::JoinedNodes{CompressHosts(finished.scraping), why});
}

}  // namespace sonde::head
