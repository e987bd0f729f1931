#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <map>
#include <string>
#include <taut/train/terminal.hpp>

#if __has_include(<pty.h>)
#include <pty.h>
#endif

using namespace taut::train;

namespace {

// Sets environment variables and puts the old ones back. A null value unsets.
class Environment {
 public:
  explicit Environment(const std::map<std::string, const char*>& values) {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR", "TERM"}) {
      const char* old = getenv(name);
      if (old) old_[name] = old;
      unsetenv(name);
    }
    for (const auto& [name, value] : values) setenv(name.c_str(), value, 1);
  }
  ~Environment() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR", "TERM"})
      old_.count(name) ? setenv(name, old_[name].c_str(), 1) : unsetenv(name);
  }

 private:
  std::map<std::string, std::string> old_;
};

}  // namespace

TEST(Terminal, IsPlainByDefault) {
  const Terminal terminal;
  EXPECT_FALSE(terminal.interactive || terminal.utf8 || terminal.color);
  EXPECT_EQ(terminal.columns(), 80);
}

TEST(Terminal, SeesThatAPipeIsNone) {
  const Environment environment{{{"TERM", "xterm"}}};
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const auto terminal = Terminal::detect(ends[1]);
  EXPECT_FALSE(terminal.interactive || terminal.color);
  EXPECT_EQ(terminal.columns(), 80);
  close(ends[0]);
  close(ends[1]);
}

TEST(Terminal, TakesUtf8FromTheFirstVariableThatIsSet) {
  const auto utf8 = [](const std::map<std::string, const char*>& values) {
    const Environment environment{values};
    return Terminal::detect(-1).utf8;
  };
  EXPECT_FALSE(utf8({}));
  EXPECT_FALSE(utf8({{"LANG", "C"}}));
  EXPECT_TRUE(utf8({{"LANG", "en_US.UTF-8"}}));
  EXPECT_TRUE(utf8({{"LANG", "de_DE.utf8"}}));
  EXPECT_TRUE(utf8({{"LANG", "C"}, {"LC_CTYPE", "C.UTF-8"}}));
  EXPECT_FALSE(utf8({{"LC_ALL", "POSIX"}, {"LC_CTYPE", "C.UTF-8"}, {"LANG", "C.UTF-8"}}));
  EXPECT_TRUE(utf8({{"LC_ALL", ""}, {"LANG", "C.UTF-8"}}));  // empty counts as unset
}

#if __has_include(<pty.h>)
TEST(Terminal, ReadsARealTerminalAndFollowsItsWidth) {
  int master = -1, slave = -1;
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 120;
  if (openpty(&master, &slave, nullptr, nullptr, &size) != 0) GTEST_SKIP() << "no pseudo-terminals here";
  {
    const Environment environment{{{"TERM", "xterm"}}};
    const auto terminal = Terminal::detect(slave);
    EXPECT_TRUE(terminal.interactive);
    EXPECT_TRUE(terminal.color);
    EXPECT_EQ(terminal.columns(), 120);
    size.ws_col = 100;
    ASSERT_EQ(ioctl(master, TIOCSWINSZ, &size), 0);
    EXPECT_EQ(terminal.columns(), 100);
  }
  {
    const Environment environment{{{"TERM", "xterm"}, {"NO_COLOR", "1"}}};
    EXPECT_TRUE(Terminal::detect(slave).interactive);
    EXPECT_FALSE(Terminal::detect(slave).color);
  }
  {
    const Environment environment{{{"TERM", "dumb"}}};
    EXPECT_FALSE(Terminal::detect(slave).interactive);
  }
  close(slave);
  close(master);
}
#endif
