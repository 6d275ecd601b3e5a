#include "serve/site/serve_site.h"

#include <fmt/core.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <utility>

#include "core/log.h"
#include "core/text/ascii.h"
#include "core/text/split.h"
#include "forward/formats/destination.h"
#include "serve/site/accounts.h"
#include "serve/site/door.h"
#include "serve/site/gatekeeper.h"
#include "serve/site/listen.h"
#include "serve/site/messages.h"
#include "serve/site/starter.h"
#include "serve/site/tokens.h"
#include "serve/site/user_servers.h"

namespace sonde::site {
namespace {

constexpr size_t kMinSecret = 16;

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view part : Split(text, ',')) {
    if (const std::string_view word = Trim(part, " "); !word.empty()) words.emplace_back(word);
  }
  return words;
}

// The names in the directory with one entry for each user, if the pattern has such a part.
std::vector<std::string> UsersBy(const std::string& pattern, const Accounts& accounts) {
  constexpr std::string_view kPart = "/%u";
  std::vector<std::string> users;
  const size_t at = pattern.find(kPart);
  const bool alone = at != std::string::npos && pattern.find('%') == at + 1 &&
                     (at + kPart.size() == pattern.size() || pattern[at + kPart.size()] == '/');
  if (!alone) return users;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(pattern.substr(0, at + 1), error)) {
    std::string name = entry.path().filename().string();
    if (accounts.ByName(name).ok()) users.push_back(std::move(name));
  }
  std::sort(users.begin(), users.end());
  return users;
}

Result<SiteRules> RulesOf(const Config& config, const Accounts& accounts) {
  SiteRules rules;
  rules.admins = WordsOf(config.site_admins);
  rules.user_header = config.site_user_header;
  if (!config.site_proxy.empty()) {
    const Result<Account> proxy = accounts.ByName(config.site_proxy);
    if (!proxy.ok()) return proxy.status().Within("site_proxy");
    rules.proxy = proxy->uid;
  }
  Result<std::string> secret = forward::ReadSecret(config.site_proxy_secret);
  if (!secret.ok()) return secret.status().Within("site_proxy_secret");
  rules.proxy_secret = *std::move(secret);
  if (!rules.proxy_secret.empty() && rules.proxy_secret.size() < kMinSecret) {
    return Status(Code::kInvalid,
                  fmt::format("site_proxy_secret: expected {} characters or more", kMinSecret));
  }
  const bool has_proxy = rules.proxy || !rules.proxy_secret.empty();
  if (has_proxy == rules.user_header.empty()) {
    return Status(
        Code::kInvalid,
        "a proxy needs both site_user_header, in which it says who asks, and site_proxy or "
        "site_proxy_secret, by which it is known");
  }
  return rules;
}

Status DropRights(const Account& account) {
  if (setgroups(0, nullptr) != 0 || setresgid(account.gid, account.gid, account.gid) != 0 ||
      setresuid(account.uid, account.uid, account.uid) != 0) {
    return SystemError("become " + account.name);
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0);  // this process holds the secret and the key
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  return chdir("/") == 0 ? Status() : SystemError("change to /");
}

struct DoorParts {
  const Config& config;
  const Accounts& accounts;
  Account account;
  std::string path;  // of the Unix socket; "": an address
  UniqueFd listener;
  UniqueFd teller;  // of tokens; none where a proxy's secret tells who asks
  UniqueFd starter;
};

// The proxy's secret and the key of the tokens.
struct Secrets {
  SiteRules rules;
  std::string key;
};

// Read by the door, before it gives up its rights, and by no process that users' are forked from.
Result<Secrets> ReadSecrets(const DoorParts& parts) {
  Result<SiteRules> rules = RulesOf(parts.config, parts.accounts);
  if (!rules.ok()) return rules.status();
  if (parts.path.empty() && rules->proxy_secret.empty()) {
    return Status(Code::kInvalid,
                  "who comes to an address is known only by a proxy's secret; set "
                  "site_proxy_secret and site_user_header, or listen on unix:/PATH");
  }
  Result<std::string> key =
      parts.path.empty() ? std::string() : Tokens::KeyAt(parts.path + kTokenKey);
  if (!key.ok()) return key.status();
  return Secrets{*std::move(rules), *std::move(key)};
}

constexpr std::string_view kReady = "ready";

// Its first message to the starter is kReady, or why it cannot begin.
Status RunDoor(DoorParts parts) {
  Result<Secrets> secrets = ReadSecrets(parts);
  const Status began = secrets.ok() ? DropRights(parts.account) : secrets.status();
  SONDE_RETURN_IF_ERROR(
      SendMessage(parts.starter.get(), began.ok() ? kReady : std::string_view(began.message())));
  if (!began.ok()) return {};  // the starter says it
  boost::asio::io_context context(1);
  const Gatekeeper gatekeeper(std::move(secrets->rules), parts.accounts);
  UserServers servers(context, std::move(parts.starter), parts.config.site_open);
  const Tokens tokens(std::move(secrets->key));
  Door door(context, gatekeeper, tokens, servers,
            [&parts] { return UsersBy(parts.config.archive, parts.accounts); });
  SONDE_RETURN_IF_ERROR(door.Listen(std::move(parts.listener)));
  if (parts.teller) {
    SONDE_RETURN_IF_ERROR(door.Listen(std::move(parts.teller), Door::Tells::kTokens));
  }
  context.run();
  return {Code::kUnavailable, "the process that starts others has ended"};
}

// The door's process closes `other_end`, which it must not have.
Result<pid_t> StartDoor(DoorParts parts, UniqueFd& other_end) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return SystemError("start the door");
  if (pid > 0) return pid;
  other_end.Reset();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  try {
    const Status ended = RunDoor(std::move(parts));
    if (!ended.ok()) log::Error("the door: {}", ended.message());
  } catch (const std::exception& e) {
    log::Error("the door: {}", e.what());
  }
  _exit(EXIT_FAILURE);
}

}  // namespace

Status ServeSite(Config config, const std::string& listen) {
  if (geteuid() != 0) {
    return {Code::kPermission,
            "sonde serve --site must be started as root: it becomes each user to read his archive; "
            "your own archive is served without --site"};
  }
  // The log level info tells who looked at whose archive.
  const auto level = log::ParseLevel(config.log_level);
  if (level.ok()) SONDE_RETURN_IF_ERROR(log::Open("sonde", "", *level));
  if (!config.site_archives.empty()) config.archive = config.site_archives;
  const Accounts& accounts = Accounts::System();
  const bool local = listen.starts_with(kUnixPrefix);
  const std::string name = config.site_account.empty() ? "nobody" : config.site_account;
  Result<Account> account = accounts.ByName(name);
  if (!account.ok()) return account.status().Within("site_account");
  if (account->uid == 0) {
    return {Code::kInvalid, "site_account: expected an account other than root"};
  }
  Result<UniqueFd> listener = Listen(listen);
  if (!listener.ok()) return listener.status();
  UniqueFd teller;
  const std::string path = local ? listen.substr(kUnixPrefix.size()) : "";
  const auto take_away = [&] {
    if (!local) return;
    unlink(path.c_str());
    unlink((path + kTokenSocket).c_str());
  };
  if (local) {
    Result<UniqueFd> second = Listen(listen + kTokenSocket);
    if (!second.ok()) return second.status();
    teller = *std::move(second);
  }
  Result<std::pair<UniqueFd, UniqueFd>> ends = MakePair();
  if (!ends.ok()) return ends.status();
  sigset_t stop;
  sigemptyset(&stop);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stop, signal);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
  const Result<pid_t> door =
      StartDoor({config, accounts, *std::move(account), path, *std::move(listener),
                 std::move(teller), std::move(ends->second)},
                ends->first);
  if (!door.ok()) return door.status();
  const Result<Message> began = ReceiveMessage(ends->first.get(), true);
  if (!began.ok() || began->text != kReady) {
    waitpid(*door, nullptr, 0);
    take_away();
    if (began.ok()) return {Code::kInvalid, began->text};
    return {Code::kInternal, "the door has ended as it began; its messages say why"};
  }
  fmt::print("Archives of all users at {}\n", listen);
  std::fflush(stdout);
  const bool asked = Starter(config, accounts, config.site_open).Run(ends->first, stop);
  // A door that has closed its end is ending, and may still report why.
  if (asked) kill(*door, SIGTERM);
  waitpid(*door, nullptr, 0);
  take_away();
  return asked ? Status() : Status(Code::kInternal, "the door has ended; its messages say why");
}

}  // namespace sonde::site
