#include "cli/top/terminal.h"

// Functions, no macros: these have names such as move and clear.
#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>

namespace sonde::cli::top {
namespace {

// All that ends a program unless it says otherwise, but for crashes and for SIGKILL; real-time
// signals as well. SIGWINCH and SIGTSTP concern the terminal.
constexpr int kRead[] = {SIGINT,  SIGTERM,   SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
                         SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ, SIGIO,
                         SIGPWR,  SIGSTKFLT, SIGPIPE, SIGTSTP, SIGWINCH};
constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

// What a handler of a crash needs: it may call nothing of ncurses.
struct Restoring {
  termios modes{};
  char text[128] = {};
  size_t size = 0;
};
Restoring restoring;

void OnCrash(int signal) {
  static_cast<void>(::write(STDOUT_FILENO, restoring.text, restoring.size) >= 0);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &restoring.modes);
  ::raise(signal);  // SA_RESETHAND: it now does what it always does
}

void Append(const char* name) {
  const char* text = ::tigetstr(name);
  if (text == nullptr || text == reinterpret_cast<const char*>(-1)) return;
  const size_t size = std::strlen(text);
  if (restoring.size + size > sizeof restoring.text) return;
  std::memcpy(restoring.text + restoring.size, text, size);
  restoring.size += size;
}

void RestoreOnCrash() {
  restoring.size = 0;
  for (const char* name : {"sgr0", "rmkx", "cnorm", "rmcup"}) Append(name);
  struct sigaction action {};
  action.sa_handler = OnCrash;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int signal : kCrashes) ::sigaction(signal, &action, nullptr);
}

void LeaveCrashes() {
  for (const int signal : kCrashes) std::signal(signal, SIG_DFL);
}

// ncurses writes UTF-8 if the locale says so; a locale that is not installed here says nothing.
bool SetLocale(bool unicode) {
  if (!unicode) return std::setlocale(LC_CTYPE, "C") == nullptr;
  for (const char* locale : {"", "C.UTF-8", "C.utf8", "en_US.UTF-8"}) {
    if (std::setlocale(LC_CTYPE, locale) == nullptr) continue;
    if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0) return true;
  }
  return false;
}

// As under nohup.
bool IsIgnored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

enum Pair : short { kGreen = 1, kYellow, kRed, kCyan };

attr_t LookOf(const Cell& cell, bool colour, short& pair) {
  attr_t look = A_NORMAL;
  pair = 0;
  switch (cell.style) {
    case Style::kPlain:
      break;
    case Style::kDim:
      look = A_DIM;
      break;
    case Style::kBold:
      look = A_BOLD;
      break;
    case Style::kTitle:
      look = A_REVERSE;
      break;
    case Style::kGood:
      pair = kGreen;
      break;
    case Style::kWarn:
      pair = kYellow;
      break;
    case Style::kBad:
      pair = kRed;
      look = A_BOLD;
      break;
    case Style::kCool:
      pair = kCyan;
      break;
  }
  if (!colour) pair = 0;
  return cell.selected ? look | A_REVERSE : look;
}

}  // namespace

Signals::Signals() {
  sigset_t read;
  sigemptyset(&read);
  for (const int signal : kRead) {
    if (!IsIgnored(signal)) sigaddset(&read, signal);
  }
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
    if (!IsIgnored(signal)) sigaddset(&read, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &read, &before_);
  fd_ = ::signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals() {
  if (fd_ >= 0) ::close(fd_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Signals::Next() const {
  signalfd_siginfo info{};
  return ::read(fd_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

Result<std::unique_ptr<Terminal>> Terminal::Open(bool colour, bool unicode) {
  ::tcgetattr(STDIN_FILENO, &restoring.modes);
  const bool utf8 = SetLocale(unicode);
  if (::newterm(nullptr, stdout, stdin) == nullptr) {
    const char* type = std::getenv("TERM");
    return Status(Code::kUnsupported,
                  std::string("the type of the terminal, TERM=") + (type == nullptr ? "" : type) +
                      ", is not known here: set another one, such as TERM=xterm, or print one "
                      "frame by --once");
  }
  RestoreOnCrash();
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::nodelay(stdscr, TRUE);
  ::set_escdelay(25);
  ::curs_set(0);
  const bool colours = colour && ::has_colors() && ::start_color() == OK;
  if (colours) {
    const short ground = ::use_default_colors() == OK ? -1 : COLOR_BLACK;
    ::init_pair(kGreen, COLOR_GREEN, ground);
    ::init_pair(kYellow, COLOR_YELLOW, ground);
    ::init_pair(kRed, COLOR_RED, ground);
    ::init_pair(kCyan, COLOR_CYAN, ground);
  }
  return std::unique_ptr<Terminal>(new Terminal(colours, utf8));
}

Terminal::Terminal(bool colour, bool unicode) : colour_(colour), unicode_(unicode) {}

Terminal::~Terminal() {
  ::endwin();
  LeaveCrashes();
}

size_t Terminal::width() const { return static_cast<size_t>(::getmaxx(stdscr)); }
size_t Terminal::height() const { return static_cast<size_t>(::getmaxy(stdscr)); }

void Terminal::Show(const Screen& screen) {
  const bool comparable =
      shown_ && shown_->width() == screen.width() && shown_->height() == screen.height();
  if (!comparable) ::erase();
  for (size_t y = 0; y < screen.height(); ++y) {
    for (size_t x = 0; x < screen.width(); ++x) {
      const Cell& cell = screen.At(x, y);
      if (comparable && shown_->At(x, y) == cell) continue;
      const std::array<wchar_t, 2> text = {static_cast<wchar_t>(cell.letter), L'\0'};
      short pair = 0;
      const attr_t look = LookOf(cell, colour_, pair);
      cchar_t drawn{};
      ::setcchar(&drawn, text.data(), look, pair, nullptr);
      ::mvadd_wch(static_cast<int>(y), static_cast<int>(x), &drawn);
    }
  }
  ::refresh();
  shown_ = screen;
}

std::optional<Key> Terminal::Next(bool& gone) {
  using enum Key::Kind;
  while (true) {
    errno = 0;
    const int code = ::getch();
    switch (code) {
      case ERR:
        gone = gone || errno == EIO;
        return std::nullopt;
      case KEY_UP:
        return Key{kUp, 0, false};
      case KEY_DOWN:
        return Key{kDown, 0, false};
      case KEY_PPAGE:
        return Key{kPageUp, 0, false};
      case KEY_NPAGE:
        return Key{kPageDown, 0, false};
      case KEY_HOME:
        return Key{kHome, 0, false};
      case KEY_END:
        return Key{kEnd, 0, false};
      case KEY_ENTER:
      case '\n':
      case '\r':
        return Key{kEnter, 0, false};
      case KEY_BACKSPACE:
      case 127:
      case '\b':
        return Key{kBack, 0, true};
      case 27:
        return Key{kBack, 0, false};
      case '\t':
        return Key{kTab, 0, false};
      case KEY_RESIZE:
        continue;
      default:
        if (code >= 0x20 && code < 0x7f) return Key{kLetter, static_cast<char>(code), false};
    }
  }
}

void Terminal::Resize() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return;
  ::resizeterm(size.ws_row, size.ws_col);
  ::clear();
  shown_.reset();
}

void Terminal::Suspend() {
  ::endwin();
  ::raise(SIGSTOP);
  Resize();
  ::clear();
  shown_.reset();
}

}  // namespace sonde::cli::top
