// Runs a fuzz target without libFuzzer, and so with any compiler: inputs are random mutations of the target's
// seeds, the same at every run.
//
//     cd tests/fuzz
//     g++ -std=c++20 -g -O1 -fsanitize=address,undefined -I../../include idx_fuzz.cpp driver.cpp
//     ./a.out [SECONDS]         mutates for so long (10)
//     ./a.out FILE              tries this input
//
// An input that makes the target throw or crash is left in `fuzz-finding.bin`. With libFuzzer, leave this
// file out and add -fsanitize=fuzzer.

#include "driver.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using Input = std::vector<std::uint8_t>;

constexpr const char* finding_path = "fuzz-finding.bin";

// What the target is working on. Shared with the parent process, so that it outlives any crash.
struct Current {
  std::size_t size;
  std::uint8_t bytes[1 << 20];
};

Current& make_shared_current() {
  void* memory = mmap(nullptr, sizeof(Current), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
  return *new (memory) Current{};
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

void try_input(const Input& input, Current& current) {
  current.size = std::min(input.size(), sizeof(current.bytes));
  std::copy_n(input.begin(), current.size, current.bytes);
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

void fuzz(double seconds, Current& current) {
  const auto seeds = taut::test::fuzz_seeds();
  for (const auto& seed : seeds) try_input(seed, current);
  Mutator mutator(seeds);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  long count = 0;
  for (; count % 64 != 0 || std::chrono::steady_clock::now() < end; ++count)
    try_input(mutator.next(), current);
  std::printf("%ld inputs, nothing found\n", count);
}

// Calls `work` in a process of its own, and returns whether that ended well.
template <class Work> bool survives(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      work();
      std::exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "an exception came out: %s\n", error.what());
    } catch (...) {
      std::fprintf(stderr, "something came out that is no std::exception\n");
    }
    std::exit(1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void save_finding(const Current& current) {
  std::ofstream file(finding_path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(current.bytes), static_cast<std::streamsize>(current.size));
  std::fprintf(stderr, "the input is in %s\n", finding_path);
}

}  // namespace

int main(int argc, char** argv) {
  auto& current = make_shared_current();
  const std::string argument = argc > 1 ? argv[1] : "10";
  char* rest = nullptr;
  const double seconds = std::strtod(argument.c_str(), &rest);
  const bool is_number = *rest == '\0';
  std::ifstream file;
  if (!is_number) file.open(argument, std::ios::binary);
  if (!is_number && !file) {
    std::fprintf(stderr, "cannot open %s\n", argument.c_str());
    return 2;
  }
  const bool good = survives([&] {
    if (is_number) return fuzz(seconds, current);
    try_input(Input(std::istreambuf_iterator<char>(file), {}), current);
  });
  if (!good) save_finding(current);
  return good ? 0 : 1;
}
