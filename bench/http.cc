// What a question over HTTP takes, from the first byte sent to the last byte received, over the
// loopback of this machine.
//
//   bench_http [SECONDS]
//   bench_http --clients PORT TOKEN SECONDS METRIC   64 clients of another server on this machine,
//   each
//                                                    asking for a metric's last 6 minutes
//
//   wide      64 series of an hour at 1 Hz, downsampled to 64 x 360 points: the time of one
//   question job       a metric of the whole step over an hour, from the head's reduced series of
//   300 metrics,
//             raw (3600 points) and downsampled
//   answers   answers of 200 kB in a second, by a server of one thread; the client has its own
//   clients   64 clients at a time, each asking for 360 points again and again: median and p99
//   large     what an answer of 100,000 points adds to the memory of the process
//
// Times are medians; those named _cpu are the server's CPU time, for machines that have other work.
// SECONDS is how long each of the last ones runs.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "series/store/reduced.h"
#include "series/store/store.h"
#include "web/opentsdb/put_store.h"
#include "web/server/server.h"
#include "web/source/point_sink.h"

namespace sonde {
namespace {

constexpr Nanos kBegin = Nanos{1'795'230'000} * kSecond;  // a full hour
constexpr int64_t kFirst = kBegin / kSecond;
constexpr char kToken[] = "0123456789abcdef";

double CpuMs(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}
// What this process used but for the calling thread, which is the client.
double ServerMs() { return CpuMs(CLOCK_PROCESS_CPUTIME_ID) - CpuMs(CLOCK_THREAD_CPUTIME_ID); }

double NowMs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

// One connection that asks and reads answers whole, without keeping them.
class Client {
 public:
  explicit Client(uint16_t port, std::string token = kToken)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)), token_(std::move(token)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) Die("connect");
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Send(const std::string& body) {
    const std::string text = fmt::format(
        "POST /api/query HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\n"
        "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        token_, body.size(), body);
    if (send(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) Die("send");
  }
  // The bytes of the next answer's body.
  size_t Receive() {
    const std::string header = ReadTo("\r\n\r\n");
    if (!header.starts_with("HTTP/1.1 200 ")) Die(header.c_str());
    const size_t length = header.find("Content-Length: ");
    if (length != std::string::npos) {
      const size_t bytes = std::strtoul(header.c_str() + length + 16, nullptr, 10);
      Skip(bytes);
      return bytes;
    }
    size_t bytes = 0;
    while (const size_t chunk = std::strtoul(ReadTo("\r\n").c_str(), nullptr, 16)) {
      Skip(chunk + 2);
      bytes += chunk;
    }
    ReadTo("\r\n");
    return bytes;
  }
  size_t Ask(const std::string& body) {
    Send(body);
    return Receive();
  }

 private:
  [[noreturn]] static void Die(const char* what) {
    std::fprintf(stderr, "bench_http: %s\n", what);
    std::exit(1);
  }
  void Fill() {
    char bytes[65536];
    const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
    if (n <= 0) Die("the server closed the connection");
    if (at_ == buffer_.size()) buffer_.clear(), at_ = 0;
    buffer_.append(bytes, static_cast<size_t>(n));
  }
  std::string ReadTo(std::string_view end) {
    size_t found = 0;
    while ((found = buffer_.find(end, at_)) == std::string::npos) Fill();
    const std::string text = buffer_.substr(at_, found + end.size() - at_);
    at_ = found + end.size();
    return text;
  }
  void Skip(size_t bytes) {
    while (bytes > buffer_.size() - at_) {
      bytes -= buffer_.size() - at_;
      at_ = buffer_.size();
      Fill();
    }
    at_ += bytes;
  }

  int fd_;
  std::string token_;
  std::string buffer_;
  size_t at_ = 0;
};

std::unique_ptr<web::Server> Serve(std::shared_ptr<const web::DataSource> source, int threads) {
  web::Server::Options options;
  options.port = 0;
  options.token = kToken;
  options.threads = threads;
  options.limits.connections = 128;
  auto server = web::Server::Start(options, std::move(source));
  if (!server.ok()) {
    std::fprintf(stderr, "bench_http: %s\n", std::string(server.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(server);
}

// --- Data ---

double Noise(std::mt19937_64& random) {
  return std::round(static_cast<double>(random() % 10'000'000)) / 100;
}

void Put(const web::DataSource& store, const std::string& metric, int hosts, int points) {
  std::mt19937_64 random(5);
  for (int host = 0; host < hosts; ++host) {
    const Tags tags = {{"host", "n" + std::to_string(host)}};
    for (int i = 0; i < points; ++i) {
      (void)store.sink()->Put({metric, tags, kBegin + i * kSecond, Noise(random), false});
    }
  }
}

// The reduced series of a step, in a store like the head's.
class ReducedSource final : public web::DataSource {
 public:
  ReducedSource() : store_(Options()) {
    constexpr size_t kSeries = 300;
    std::vector<Series> series(kSeries);
    for (size_t i = 0; i < kSeries; ++i) series[i].metric.name = "m" + std::to_string(i);
    store_.SetSchema(ReducedSchema(series));
    std::mt19937_64 random(7);
    std::vector<double> row(kSeries * kStatColumns);
    for (int i = 0; i < 3600; ++i) {
      for (size_t m = 0; m < kSeries; ++m) {
        Reduced value;
        for (uint32_t node = 0; node < 4; ++node) value.Add(Noise(random), {node, Owner::kNobody});
        ToColumns(value, &row[m * kStatColumns]);
      }
      store_.Append(kBegin + i * kSecond, row);
    }
  }
  void Jobs(size_t, JobsCallback callback) const override {
    callback(std::vector<JobDescription>());
  }
  void GetProfile(const JobStep&, ProfileCallback callback) const override {
    callback(Status(Code::kNotFound, "none"));
  }
  void ListSeries(std::string_view, size_t, SeriesCallback callback) const override {
    callback(std::vector<Series>());
  }
  void Query(const QuerySpec& spec, Callback callback) const override {
    const TimeRange range = DataRange(spec);
    Result<std::vector<QueryResult>> results = EvaluateReduced(
        spec, store_.Read([&](const Series& one) { return ReducedNeeds(spec, one); }, range.first,
                          range.last));
    if (!results.ok()) return callback(results.status());
    callback(web::Answer{*std::move(results), 1, 1});
  }

 private:
  static GroupStore::Options Options() {
    GroupStore::Options options;
    options.memory_limit = 32u << 20;
    options.plain_limit = 12u << 20;
    options.column_limit = 8u << 20;
    return options;
  }
  GroupStore store_;
};

std::string Body(const std::string& metric, int seconds, const std::string& rest) {
  return fmt::format(R"({{"start":{},"end":{},"queries":[{{"metric":"{}",{}}}]}})", kFirst,
                     kFirst + seconds - 1, metric, rest);
}

// --- Figures ---

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

void Time(const char* name, uint16_t port, const std::string& body) {
  Client client(port);
  client.Ask(body);  // warms up
  std::vector<double> times;
  std::vector<double> cpu;
  size_t bytes = 0;
  for (int i = 0; i < 101; ++i) {
    const double start = NowMs();
    const double used = ServerMs();
    bytes = client.Ask(body);
    cpu.push_back(ServerMs() - used);
    times.push_back(NowMs() - start);
  }
  std::printf("figure http.%s %.3f ms  # %.3f to %.3f, %zu bytes\n", name, Quantile(times, 0.5),
              Quantile(times, 0.25), Quantile(times, 0.75), bytes);
  std::printf("figure http.%s_cpu %.3f ms  # %.3f to %.3f\n", name, Quantile(cpu, 0.5),
              Quantile(cpu, 0.25), Quantile(cpu, 0.75));
}

void CountAnswers(uint16_t port, const std::string& body, double seconds) {
  constexpr int kAhead = 4;
  Client client(port);
  const size_t bytes = client.Ask(body);
  int answers = 0;
  for (int i = 0; i < kAhead; ++i) client.Send(body);
  const double start = NowMs();
  const double used = ServerMs();
  while (NowMs() - start < seconds * 1e3) {
    client.Receive();
    client.Send(body);
    ++answers;
  }
  std::printf("figure http.answers %.0f /s  # of %zu bytes, one thread\n",
              answers / (NowMs() - start) * 1e3, bytes);
  std::printf("figure http.answers_of_a_core %.0f /s  # by the server's CPU time\n",
              answers / (ServerMs() - used) * 1e3);
}

void ManyClients(uint16_t port, const std::string& body, double seconds,
                 const std::string& token = kToken) {
  constexpr int kClients = 64;
  std::vector<std::vector<double>> times(kClients);
  std::vector<std::thread> threads;
  const double end = NowMs() + seconds * 1e3;
  for (auto& mine : times) {
    threads.emplace_back([&mine, port, &body, &token, end] {
      Client client(port, token);
      for (double now = NowMs(); now < end;) {
        client.Ask(body);
        const double after = NowMs();
        mine.push_back(after - now);
        now = after;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& mine : times) all.insert(all.end(), mine.begin(), mine.end());
  const double median = Quantile(all, 0.5);
  std::printf("figure http.clients_median %.2f ms  # of 64 at a time, %zu answers\n", median,
              all.size());
  std::printf("figure http.clients_p99 %.2f ms  # %.1f times the median\n", Quantile(all, 0.99),
              Quantile(all, 0.99) / median);
}

// Also sets the mark anew, where the kernel lets us.
double PeakKib() {
  std::ifstream status("/proc/self/status");
  double peak = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) peak = std::strtod(line.c_str() + 6, nullptr);
  }
  std::ofstream("/proc/self/clear_refs") << "5";
  return peak;
}

void Large(uint16_t port, const std::string& body) {
  Client client(port);
  client.Ask(Body("long", 60, R"("aggregator":"none")"));
  PeakKib();
  const double before = PeakKib();
  const size_t bytes = client.Ask(body);
  std::printf("figure http.large_memory %.1f MiB  # for %zu bytes of 100,000 points\n",
              (PeakKib() - before) / 1024, bytes);
}

void Run(double seconds) {
  const auto store = std::make_shared<web::PutStore>();
  Put(*store, "wide", 64, 3600);
  Put(*store, "long", 1, 100'000);
  const auto one = Serve(store, 1);
  Large(one->port(), Body("long", 100'000, R"("aggregator":"none")"));
  Time("wide", one->port(),
       Body("wide", 3600, R"("aggregator":"sum","downsample":"10s-avg","tags":{"host":"*"})"));
  CountAnswers(one->port(), Body("long", 9'200, R"("aggregator":"none")"), seconds);
  const auto two = Serve(store, 2);
  ManyClients(
      two->port(),
      Body("wide", 3600, R"("aggregator":"sum","downsample":"10s-avg","tags":{"host":"n1"})"),
      seconds);

  const auto head = Serve(std::make_shared<ReducedSource>(), 1);
  Time("job", head->port(), Body("m7", 3600, R"("aggregator":"avg")"));
  Time("job_10s", head->port(), Body("m7", 3600, R"("aggregator":"avg","downsample":"10s-avg")"));
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  if (argc == 6 && std::string_view(argv[1]) == "--clients") {
    const std::string body = fmt::format(
        R"({{"start":"6m-ago","queries":[{{"metric":"{}","aggregator":"avg"}}]}})", argv[5]);
    sonde::ManyClients(static_cast<uint16_t>(std::atoi(argv[2])), body, std::atof(argv[4]),
                       argv[3]);
    return 0;
  }
  sonde::Run(argc > 1 ? std::atof(argv[1]) : 2);
  return 0;
}
