// Switching between stacks: by hand on x86-64, where a switch and back takes some 30 ns, else by ucontext,
// where it takes over 500 ns. AddressSanitizer is told of every switch, since it keeps books of stacks.

#include "fiber.hpp"

#include <sys/mman.h>
#include <taut/core/sanitizer.hpp>

#include <cstdint>
#include <new>

#if TAUT_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emulator {
namespace {

constexpr std::size_t page = 4096, stack_bytes = 128 * 1024;

Fiber* running = nullptr;

/// The stack that fibers are resumed from.
struct Home {
  void* context = nullptr;
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
} home;

#ifdef __x86_64__

/// Saves the registers that a call keeps and the stack pointer, to `*from`, and goes on where `to` was saved.
__attribute__((naked, noinline)) void switch_stacks(void** /*from*/, void* /*to*/) {
  asm("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n\t"
      "movq %rsp, (%rdi); movq %rsi, %rsp\n\t"
      "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp\n\t"
      "ret");
}

/// A context in which `switch_stacks` goes to the beginning of `function`, as if it had been called.
void* new_context(std::byte* stack, void (*function)()) {
  auto* top = reinterpret_cast<void**>(stack + stack_bytes);
  *--top = nullptr;  // keeps the stack pointer off a multiple of 16, as after a call
  *--top = reinterpret_cast<void*>(function);
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
  return top;
}

#else

void switch_stacks(void** from, void* to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}

// The first context is never written to again: later ones lie on the stacks themselves.
void* new_context(std::byte* stack, void (*function)()) {
  auto* context = new (stack) ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = stack + sizeof(ucontext_t);
  context->uc_stack.ss_size = stack_bytes - sizeof(ucontext_t);
  context->uc_link = nullptr;
  makecontext(context, function, 0);
  return context;
}

#endif

/// To be called before a switch to another stack.
void leave_stack([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* to,
                 [[maybe_unused]] std::size_t bytes) {
#if TAUT_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(fake_stack, to, bytes);
#endif
}

/// To be called after a switch; tells from which stack it came.
void arrive_on_stack([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** from,
                     [[maybe_unused]] std::size_t* bytes) {
#if TAUT_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack, from, bytes);
#endif
}

}  // namespace

Fiber::Fiber(void (*body)()) : body_(body) {
  void* memory = mmap(nullptr, page + stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, page, PROT_NONE);
  memory_ = static_cast<std::byte*>(memory);
  context_ = new_context(memory_ + page, &enter);
}

Fiber::~Fiber() { munmap(memory_, page + stack_bytes); }

void Fiber::enter() {
  arrive_on_stack(nullptr, &home.bottom, &home.bytes);
  running->body_();
}

void Fiber::resume() {
  running = this;
  leave_stack(&home.fake_stack, memory_ + page, stack_bytes);
  switch_stacks(&home.context, context_);
  arrive_on_stack(home.fake_stack, nullptr, nullptr);
}

void Fiber::suspend() {
  leave_stack(&fake_stack_, home.bottom, home.bytes);
  switch_stacks(&context_, home.context);
  arrive_on_stack(fake_stack_, &home.bottom, &home.bytes);
}

}  // namespace emulator
