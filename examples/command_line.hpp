#pragma once
// The command line of an example, by CLI11. The library stands behind this header because it takes longer to
// compile than an example does.
//
//     int epochs = 10;
//     CommandLine line("Trains a model.");
//     line.integer("--epochs", epochs, 0, "passes over the data");
//     if (!line.parse(argc, argv)) return 0;

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

/// Each member but `parse` declares an option: the variable that its value goes to, which holds the default,
/// and what it means. A name without dashes is a positional argument, which must be given.
class CommandLine {
 public:
  explicit CommandLine(const std::string& about);
  ~CommandLine();

  /// Any text.
  void text(const char* name, std::string& value, const std::string& meaning);
  /// One of several words.
  void choice(const char* name, std::string& value, std::initializer_list<const char*> words,
              const std::string& meaning);
  /// A whole number of at least `least`.
  void integer(const char* name, int& value, int least, const std::string& meaning);
  void integer(const char* name, std::uint64_t& value, const std::string& meaning);
  /// A number from `least` to `most`.
  void number(const char* name, double& value, double least, double most, const std::string& meaning);
  /// A number above 0 that a float can hold. A default of 0 stands for none.
  void positive(const char* name, double& value, const std::string& meaning);
  /// An option without a value.
  void flag(const char* name, bool& value, const std::string& meaning);

  /// Reads the arguments. Returns false if they ask for the help, which is then printed. Throws
  /// `taut::Error`, which names the option, at a mistake of the user.
  bool parse(int argc, char** argv);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};
