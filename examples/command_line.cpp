#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <taut/core/error.hpp>

#include <charconv>
#include <iostream>
#include <limits>

namespace {

/// Complains of a text that is not a number, or not one that is allowed.
template <class Number, class Allowed> CLI::Validator number_that(Allowed allowed, std::string expected) {
  const auto check = [allowed, expected = std::move(expected)](const std::string& text) {
    Number number{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool right = error == std::errc() && stop == end && allowed(number);
    return right ? std::string() : "expected " + expected + ", got " + (text.empty() ? "nothing" : text);
  };
  return CLI::Validator(check, "");
}

std::string spelled(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

}  // namespace

struct CommandLine::Parser {
  CLI::App app;

  template <class T> CLI::Option* add(const char* name, T& value, const std::string& meaning) {
    return app.add_option(name, value, meaning)
        ->capture_default_str()
        ->required(name[0] != '-')
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
};

CommandLine::CommandLine(const std::string& about) : parser_(std::make_unique<Parser>()) {
  parser_->app.description(about);
}
CommandLine::~CommandLine() = default;

void CommandLine::text(const char* name, std::string& value, const std::string& meaning) {
  parser_->add(name, value, meaning);
}

void CommandLine::choice(const char* name, std::string& value, std::initializer_list<const char*> words,
                         const std::string& meaning) {
  std::string all;
  for (const char* word : words) (all += all.empty() ? "" : ", ") += word;
  const auto check = [allowed = std::vector<std::string>(words.begin(), words.end()),
                      all](const std::string& text) {
    for (const auto& word : allowed)
      if (text == word) return std::string();
    return "expected one of " + all + ", got " + text;
  };
  parser_->add(name, value, meaning + ": " + all)->check(CLI::Validator(check, ""));
}

void CommandLine::integer(const char* name, int& value, int least, const std::string& meaning) {
  parser_->add(name, value, meaning)
      ->check(number_that<int>([least](int x) { return x >= least; },
                               "a whole number of at least " + std::to_string(least)));
}

void CommandLine::integer(const char* name, std::uint64_t& value, const std::string& meaning) {
  parser_->add(name, value, meaning)
      ->check(number_that<std::uint64_t>([](std::uint64_t) { return true; }, "a whole number of at least 0"));
}

void CommandLine::number(const char* name, double& value, double least, double most,
                         const std::string& meaning) {
  parser_->add(name, value, meaning)
      ->check(number_that<double>([=](double x) { return x >= least && x <= most; },
                                  "a number from " + spelled(least) + " to " + spelled(most)));
}

void CommandLine::positive(const char* name, double& value, const std::string& meaning) {
  auto* const option = parser_->add(name, value, meaning);
  if (value == 0) option->default_str("");
  option->check(number_that<double>([](double x) { return x > 0 && x <= std::numeric_limits<float>::max(); },
                                    "a number above 0"));
}

void CommandLine::flag(const char* name, bool& value, const std::string& meaning) {
  parser_->app.add_flag(name, value, meaning);
}

bool CommandLine::parse(int argc, char** argv) {
  try {
    parser_->app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp& help) {
    parser_->app.exit(help);
    return false;
  } catch (const CLI::ParseError& error) {
    throw taut::Error(std::string(error.what()) + "; --help lists the options");
  }
}
