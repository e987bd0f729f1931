#pragma once
// The command line of an example: `--name value` or `--name=value`, and --help. An option is declared where
// its value is asked for:
//
//     CommandLine line(argc, argv);
//     const int epochs = line.integer("--epochs", 10, 0, "passes over the data");
//     if (line.finish("Trains a model.")) return 0;

#include <charconv>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <string>
#include <string_view>
#include <taut/core/error.hpp>
#include <vector>

/// Members throw `taut::Error`, which names the option, at a mistake of the user.
class CommandLine {
 public:
  CommandLine(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      const auto equals = argument.find('=');
      if (argument == "--help" || argument == "-h")
        help_wanted_ = true;
      else if (argument.substr(0, 2) == "--" && equals != std::string::npos)
        given_.push_back({argument.substr(0, equals), argument.substr(equals + 1)});
      else if (argument.substr(0, 2) == "--" && i + 1 < argc)
        given_.push_back({argument, argv[++i]});
      else
        given_.push_back({argument, "", false});
    }
  }

  /// Any text.
  std::string text(std::string_view name, const std::string& otherwise, std::string_view meaning) {
    describe(name, meaning, otherwise);
    const Given* given = find(name);
    return given ? given->value : otherwise;
  }

  /// One of several words; the first unless given.
  std::string choice(std::string_view name, std::initializer_list<const char*> words,
                     std::string_view meaning) {
    std::string all;
    for (const char* word : words) (all += all.empty() ? "" : ", ") += word;
    describe(name, std::string(meaning) + ": " + all, *words.begin());
    const Given* given = find(name);
    for (const char* word : words)
      if (!given || given->value == word) return word;
    throw mistake(*given, "one of " + all);
  }

  /// A whole number of at least `least`.
  int integer(std::string_view name, int otherwise, int least, std::string_view meaning) {
    describe(name, meaning, std::to_string(otherwise));
    const Given* given = find(name);
    int value = otherwise;
    if (given && (!parse(given->value, value) || value < least))
      throw mistake(*given, "a whole number of at least " + std::to_string(least));
    return value;
  }

  /// A number above 0 that a float can hold. `otherwise_text` is the default in words.
  double positive(std::string_view name, double otherwise, std::string_view otherwise_text,
                  std::string_view meaning) {
    describe(name, meaning, otherwise_text);
    const Given* given = find(name);
    double value = otherwise;
    if (given && (!parse(given->value, value) || !(value > 0 && value <= std::numeric_limits<float>::max())))
      throw mistake(*given, "a number above 0");
    return value;
  }

  /// To be called after all options were asked for. Prints the help, if it is wanted, and then returns true.
  bool finish(std::string_view about) const {
    if (help_wanted_) std::cout << about << "\n\nOptions, with their defaults in brackets:\n" << meanings_;
    for (const auto& given : given_)
      if (!help_wanted_ && !given.known)
        throw taut::Error("there is no option " + given.name + "; --help lists those that there are");
    return help_wanted_;
  }

 private:
  struct Given {
    std::string name, value;
    bool has_value = true, known = false;
  };

  void describe(std::string_view name, std::string_view meaning, std::string_view otherwise) {
    std::string line = "  " + std::string(name);
    line.resize(16, ' ');
    (line += meaning) += otherwise.empty() ? "" : " [" + std::string(otherwise) + "]";
    meanings_ += line + '\n';
  }

  // The last of an option, or null.
  const Given* find(std::string_view name) {
    const Given* found = nullptr;
    for (auto& given : given_)
      if (given.name == name) {
        given.known = true;
        found = &given;
      }
    if (help_wanted_ || !found) return nullptr;
    if (!found->has_value) throw taut::Error(found->name + ": the value is missing");
    return found;
  }

  template <class Number> static bool parse(const std::string& text, Number& value) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end;
  }

  static taut::Error mistake(const Given& given, const std::string& expected) {
    return taut::Error(given.name + ": expected " + expected + ", got " + given.value);
  }

  std::vector<Given> given_;
  std::string meanings_;
  bool help_wanted_ = false;
};
