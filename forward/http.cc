#include "forward/http.h"

#include <dlfcn.h>
#include <fmt/core.h>
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace sonde::forward {
namespace {

// The functions of libcurl that are used. Loaded once, never unloaded.
struct Library {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_setopt) setopt = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_getinfo) getinfo = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_strerror) strerror = nullptr;
  decltype(&curl_slist_append) append = nullptr;
  decltype(&curl_slist_free_all) free_all = nullptr;
  Status status;
};

template <typename F>
bool Find(void* library, const char* name, F& out) {
  out = reinterpret_cast<F>(dlsym(library, name));
  return out != nullptr;
}

Library Load() {
  Library l;
  void* library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  const bool found = library != nullptr && Find(library, "curl_global_init", l.global_init) &&
                     Find(library, "curl_easy_init", l.easy_init) &&
                     Find(library, "curl_easy_setopt", l.setopt) &&
                     Find(library, "curl_easy_perform", l.perform) &&
                     Find(library, "curl_easy_getinfo", l.getinfo) &&
                     Find(library, "curl_easy_cleanup", l.cleanup) &&
                     Find(library, "curl_easy_strerror", l.strerror) &&
                     Find(library, "curl_slist_append", l.append) &&
                     Find(library, "curl_slist_free_all", l.free_all) &&
                     l.global_init(CURL_GLOBAL_ALL) == CURLE_OK;
  if (!found) {
    const char* why = dlerror();
    l.status =
        Status(Code::kUnsupported, fmt::format("forwarding needs libcurl.so.4: {}; install libcurl",
                                               why == nullptr ? "it cannot be used" : why));
  }
  return l;
}

const Library& Curl() {
  static const Library library = Load();
  return library;
}

size_t TakeBody(char* data, size_t size, size_t n, void* user) {
  std::string& body = static_cast<HttpAnswer*>(user)->body;
  body.append(data, std::min(size * n, Http::kMaxAnswer - std::min(body.size(), Http::kMaxAnswer)));
  return size * n;
}

int AskWhetherToGoOn(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& go_on = *static_cast<const std::function<bool()>*>(user);
  return !go_on || go_on() ? 0 : 1;
}

class CurlHttp : public Http {
 public:
  explicit CurlHttp(const Destination& destination) : destination_(destination) {}
  ~CurlHttp() override {
    if (easy_ != nullptr) Curl().cleanup(easy_);
  }
  CurlHttp(const CurlHttp&) = delete;
  CurlHttp& operator=(const CurlHttp&) = delete;

  Status Start() {
    SONDE_RETURN_IF_ERROR(Curl().status);
    SONDE_RETURN_IF_ERROR(ReadSecrets());
    easy_ = Curl().easy_init();
    if (easy_ == nullptr) return {Code::kInternal, "libcurl has no memory"};
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    Set(CURLOPT_SSL_VERIFYPEER, 1L);
    Set(CURLOPT_SSL_VERIFYHOST, 2L);
    Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(kConnectLimit / kMillisecond));
    Set(CURLOPT_TIMEOUT_MS, static_cast<long>(kLimit / kMillisecond));
    Set(CURLOPT_USERAGENT, "sonde/" SONDE_VERSION);
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_WRITEFUNCTION, &TakeBody);
    Set(CURLOPT_XFERINFOFUNCTION, &AskWhetherToGoOn);
    Set(CURLOPT_NOPROGRESS, 0L);
    if (!destination_.ca_file.empty()) Set(CURLOPT_CAINFO, destination_.ca_file.c_str());
    return {};
  }

  Result<HttpAnswer> Post(const std::string& url, const std::vector<std::string>& headers,
                          std::string_view body, const std::function<bool()>& go_on) override {
    Set(CURLOPT_POST, 1L);
    Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    Set(CURLOPT_POSTFIELDS, body.data());
    std::vector<std::string> all = headers;
    all.emplace_back("Expect:");  // a body is sent at once
    return Perform(url, all, go_on);
  }

  Result<HttpAnswer> Get(const std::string& url) override {
    Set(CURLOPT_HTTPGET, 1L);
    return Perform(url, {}, nullptr);
  }

 private:
  template <typename T>
  void Set(CURLoption option, T value) {
    Curl().setopt(easy_, option, value);
  }

  Status ReadSecrets() {
    Result<std::string> token = ReadSecret(destination_.token_file);
    if (!token.ok()) return token.status();
    Result<std::string> password = ReadSecret(destination_.password_file);
    if (!password.ok()) return password.status();
    authorization_.clear();
    if (!token->empty()) {
      const char* scheme = destination_.protocol == Protocol::kInflux ? "Token" : "Bearer";
      authorization_ = fmt::format("Authorization: {} {}", scheme, *token);
    }
    password_ = *std::move(password);
    return {};
  }

  Result<HttpAnswer> Perform(const std::string& url, std::vector<std::string> headers,
                             const std::function<bool()>& go_on) {
    const Library& curl = Curl();
    if (!authorization_.empty()) headers.push_back(authorization_);
    curl_slist* list = nullptr;
    for (const std::string& header : headers) list = curl.append(list, header.c_str());
    HttpAnswer answer;
    Set(CURLOPT_URL, url.c_str());
    Set(CURLOPT_HTTPHEADER, list);
    Set(CURLOPT_WRITEDATA, &answer);
    Set(CURLOPT_XFERINFODATA, &go_on);
    if (!password_.empty()) {
      Set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
      Set(CURLOPT_USERPWD, password_.c_str());
    }
    error_[0] = '\0';
    // If a kept connection turns out to be broken, libcurl sends once more, over a new one: then
    // the first request may have arrived.
    const bool had_connection = std::exchange(connected_, false);
    const CURLcode code = curl.perform(easy_);
    connected_ = code == CURLE_OK;
    curl.free_all(list);
    Set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
    if (code != CURLE_OK) return Failure(url, code, had_connection);
    long status = 0;
    long connects = 0;
    curl_off_t retry_after = 0;
    curl.getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    curl.getinfo(easy_, CURLINFO_RETRY_AFTER, &retry_after);
    curl.getinfo(easy_, CURLINFO_NUM_CONNECTS, &connects);
    answer.resent = had_connection && connects > 0;
    answer.status = static_cast<int>(status);
    answer.retry_after = std::clamp<Nanos>(retry_after, 0, 3600) * kSecond;
    // A new token in the file works without a restart.
    if (status == 401 || status == 403) SONDE_RETURN_IF_ERROR(ReadSecrets());
    return answer;
  }

  Status Failure(const std::string& url, CURLcode code, bool had_connection) {
    Code ours = Code::kUnavailable;
    const bool unreached = code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
                           code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_SSL_CONNECT_ERROR;
    if (had_connection || !unreached) {
      ours = Code::kTimeout;
    }
    // Errors that repeating does not help.
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
        code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
      ours = Code::kInvalid;
    }
    return {ours, fmt::format("ask {}: {}", url.substr(0, url.find('?')),
                              error_[0] != '\0' ? error_ : Curl().strerror(code))};
  }

  const Destination destination_;
  CURL* easy_ = nullptr;
  std::string authorization_;
  std::string password_;
  bool connected_ = false;
  char error_[CURL_ERROR_SIZE] = "";
};

}  // namespace

Result<std::unique_ptr<Http>> Http::Open(const Destination& destination) {
  auto http = std::make_unique<CurlHttp>(destination);
  SONDE_RETURN_IF_ERROR(http->Start());
  return std::unique_ptr<Http>(std::move(http));
}

}  // namespace sonde::forward
