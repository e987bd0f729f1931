// Files are read whole, and replaced whole or not at all.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <taut/io/file.hpp>

#include "../temporary_directory.hpp"

namespace {

using taut::DataError;
using taut::io::InputFile;
using taut::io::ReplacementFile;
using taut::test::file_contents;
using taut::test::TemporaryDirectory;

namespace fs = std::filesystem;

/// A directory of the test's own with an old file in it, removed at the test's end.
class Files : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(path()) << "old"; }

  std::string path(const std::string& name = "file") const { return directory_ / name; }

  static void write(ReplacementFile& file, const std::string& text) {
    file.write(std::as_bytes(std::span(text)));
  }

  static void replace(const std::string& path, const std::string& text) {
    ReplacementFile file(path);
    write(file, text);
    file.commit();
  }

  /// The message of the `DataError` about `path` that `action` throws.
  static std::string failure(const std::string& path, auto action) {
    try {
      action();
    } catch (const DataError& error) {
      EXPECT_EQ(error.path(), path);
      return std::string(error.what()).substr(path.size());
    }
    return "no error";
  }

  static std::string replacing_fails_with(const std::string& path) {
    return failure(path, [&] { replace(path, "new"); });
  }

  static std::string reading_fails_with(const std::string& path) {
    return failure(path, [&] { InputFile{path}; });
  }

  /// The files in the directory, the old one included.
  int file_count() const {
    return static_cast<int>(
        std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }

  const TemporaryDirectory directory_;
};

TEST_F(Files, AreReadInPieces) {
  InputFile file(path());
  EXPECT_EQ(file.size(), 3);
  std::string two = "..";
  file.read(std::as_writable_bytes(std::span(two)));
  EXPECT_EQ(two, "ol");
  EXPECT_EQ(failure(path(), [&] { file.read(std::as_writable_bytes(std::span(two))); }),
            " (byte 3): the file is truncated: it ends here");
  EXPECT_EQ(two, "dl");
}

TEST_F(Files, ThatCannotBeReadSayWhy) {
  EXPECT_EQ(reading_fails_with(path("absent")), ": cannot open: No such file or directory");
  EXPECT_EQ(reading_fails_with(directory_), ": cannot read: not a regular file");
  EXPECT_EQ(reading_fails_with("/dev/zero"), ": cannot read: not a regular file");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(reading_fails_with(path("pipe")), ": cannot read: not a regular file");
}

TEST_F(Files, AreCreatedOrReplaced) {
  replace(path(), "new");
  EXPECT_EQ(file_contents(path()), "new");
  replace(path("other"), "");
  EXPECT_EQ(file_contents(path("other")), "");
  EXPECT_EQ(file_count(), 2);
}

TEST_F(Files, ARelativePathIsInTheWorkingDirectory) {
  const auto before = fs::current_path();
  fs::current_path(directory_.path());
  replace("file", "new");
  fs::current_path(before);
  EXPECT_EQ(file_contents(path()), "new");
}

TEST_F(Files, OnlyCommitChangesAnything) {
  {
    ReplacementFile file(path());
    write(file, "new");
    EXPECT_EQ(file_contents(path()), "old");
    EXPECT_EQ(file_count(), 2);
  }
  EXPECT_EQ(file_contents(path()), "old");
  EXPECT_EQ(file_count(), 1);
}

TEST_F(Files, TwoWritersDoNotDisturbEachOther) {
  ReplacementFile first(path()), second(path());
  write(first, "first");
  write(second, "second");
  second.commit();
  EXPECT_EQ(file_contents(path()), "second");
  first.commit();
  EXPECT_EQ(file_contents(path()), "first");
}

TEST_F(Files, ATemporaryFileLeftByAnotherProcessIsNotTouched) {
  std::string left;
  {
    const ReplacementFile file(path());
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      if (entry.path() != path()) left = entry.path().string();
    }
  }
  const auto number = left.find_last_of('-') + 1;
  const auto next = left.substr(0, number) + std::to_string(std::stoi(left.substr(number)) + 1);
  std::ofstream(next) << "theirs";
  replace(path(), "new");
  EXPECT_EQ(file_contents(path()), "new");
  EXPECT_EQ(file_contents(next), "theirs");
}

TEST_F(Files, AKilledWriterLeavesTheOldFile) {
  const auto child = ::fork();
  if (child == 0) {
    ReplacementFile file(path());
    write(file, std::string(100'000, 'x'));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(file_contents(path()), "old");
}

TEST_F(Files, ThatCannotBeWrittenSayWhy) {
  const std::string prefix = ": cannot write (nothing was changed): ";
  EXPECT_EQ(replacing_fails_with(path("absent/file")), prefix + "No such file or directory");
  EXPECT_EQ(replacing_fails_with(path(std::string(300, 'x'))), prefix + "File name too long");
  EXPECT_EQ(replacing_fails_with(path() + "/file"), prefix + "Not a directory");
  EXPECT_EQ(replacing_fails_with(directory_), ": cannot write: not a regular file");
  EXPECT_EQ(file_contents(path()), "old");
  EXPECT_EQ(file_count(), 1);
}

TEST_F(Files, ADirectoryThatVanishesIsReported) {
  fs::create_directory(path("gone"));
  ReplacementFile file(path("gone/file"));
  write(file, "new");
  fs::remove_all(path("gone"));
  EXPECT_EQ(failure(path("gone/file"), [&] { file.commit(); }),
            ": cannot write (nothing was changed): No such file or directory");
}

TEST_F(Files, OnlyARegularFileIsReplaced) {
  // A pipe of the test's own stands for devices too: a real one would be lost if this failed.
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(replacing_fails_with(path("pipe")), ": cannot write: not a regular file");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  fs::create_symlink("pipe", path("link"));
  EXPECT_EQ(replacing_fails_with(path("link")), ": cannot write: not a regular file");
  EXPECT_TRUE(fs::is_symlink(path("link")));
}

TEST_F(Files, PermissionsAndLinksAreKept) {
  ASSERT_EQ(::chmod(path().c_str(), 0640), 0);
  fs::create_symlink("file", path("latest"));
  replace(path("latest"), "new");
  EXPECT_TRUE(fs::is_symlink(path("latest")));
  EXPECT_EQ(file_contents(path()), "new");
  EXPECT_EQ(static_cast<int>(fs::status(path()).permissions()), 0640);
}

}  // namespace
