// Runs a fuzz target without libFuzzer, and so with any compiler: inputs are random mutations of the target's
// seeds, the same at every run.
//
//     g++ -std=c++20 -g -O1 -fsanitize=address,undefined -Iinclude tests/fuzz/idx_fuzz.cpp
//     tests/fuzz/driver.cpp
//     ./a.out [SECONDS]         mutates for so long (10)
//     ./a.out FILE...           tries the given inputs
//
// An input that makes the target throw or crash is left in `fuzz-finding.bin`. With libFuzzer, leave this
// file out and add -fsanitize=fuzzer.

#include "driver.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Input = std::vector<std::uint8_t>;

constexpr const char* finding_path = "fuzz-finding.bin";

Input current;  // what the target is working on

void save_finding() {
  if (std::FILE* file = std::fopen(finding_path, "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "the input is in %s\n", finding_path);
  }
}

void save_on_crash() {
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(save_finding);
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) {
    std::signal(signal, [](int number) {
      save_finding();
      std::signal(number, SIG_DFL);
      std::raise(number);
    });
  }
}

class Mutator {
 public:
  explicit Mutator(std::vector<Input> seeds) : seeds_(std::move(seeds)) {}

  Input next() {
    Input input = any_seed();
    for (auto steps = 1 + below(6); steps > 0; --steps) mutate(input);
    return input;
  }

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  const Input& any_seed() { return seeds_[below(seeds_.size())]; }

  // Half of all changes are in the first bytes, where formats have their headers.
  std::size_t any_position(const Input& input) {
    return below(below(2) == 0 ? std::min<std::size_t>(input.size(), 24) : input.size());
  }

  std::uint8_t interesting_byte() {
    constexpr std::uint8_t bytes[] = {0x00, 0x01, 0x02, 0x04, 0x07, 0x08, 0x10, 0x7f, 0x80, 0xfe, 0xff};
    return bytes[below(std::size(bytes))];
  }

  void mutate(Input& input) {
    const auto position = any_position(input);
    const auto at = input.begin() + static_cast<std::ptrdiff_t>(position);
    const auto room = input.size() - position;
    switch (below(8)) {
      case 0:
        if (room > 0) *at ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        if (room > 0) *at = static_cast<std::uint8_t>(random_());
        break;
      case 2:
        if (room > 0) *at = interesting_byte();
        break;
      case 3: {  // a large number in either byte order
        const auto count = std::min<std::size_t>(room, 4 * (1 + below(2)));
        std::fill_n(at, count, interesting_byte());
        break;
      }
      case 4:
        input.insert(at, 1 + below(16), interesting_byte());
        break;
      case 5:
        input.erase(at, at + static_cast<std::ptrdiff_t>(std::min(room, 1 + below(16))));
        break;
      case 6:
        input.resize(position);
        break;
      default: {  // the tail of another input
        const auto& other = any_seed();
        const auto from = std::min(position, other.size());
        input.resize(position);
        input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
      }
    }
  }

  std::vector<Input> seeds_;
  std::mt19937_64 random_{20240229};
};

bool survives(Input input) {
  current = std::move(input);
  try {
    LLVMFuzzerTestOneInput(current.data(), current.size());
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the target let an exception out: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "the target let something out that is no std::exception\n");
  }
  save_finding();
  return false;
}

bool fuzz(double seconds) {
  const auto seeds = taut::test::fuzz_seeds();
  for (const auto& seed : seeds) {
    if (!survives(seed)) return false;
  }
  Mutator mutator(seeds);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  long count = 0;
  for (; count % 64 != 0 || std::chrono::steady_clock::now() < end; ++count) {
    if (!survives(mutator.next())) return false;
  }
  std::printf("%ld inputs, nothing found\n", count);
  return true;
}

bool replay(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return survives(Input(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace

int main(int argc, char** argv) {
  save_on_crash();
  const std::string first = argc > 1 ? argv[1] : "10";
  char* rest = nullptr;
  const double seconds = std::strtod(first.c_str(), &rest);
  if (*rest == '\0') return fuzz(seconds) ? 0 : 1;
  const bool good = std::all_of(argv + 1, argv + argc, [](const char* path) { return replay(path); });
  return good ? 0 : 1;
}
