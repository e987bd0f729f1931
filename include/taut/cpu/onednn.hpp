#pragma once
// The one door to oneDNN: its C handles as values, its status codes as exceptions, and what differs between
// versions 2 and 3. Kernels that call oneDNN include this header, no other one does; without TAUT_HAS_ONEDNN
// it is empty. The C interface is used because its header compiles in 0.03 s, where dnnl.hpp takes more than
// one.

#ifndef TAUT_HAS_ONEDNN
#define TAUT_HAS_ONEDNN 0
#endif

#if TAUT_HAS_ONEDNN

#include <dnnl.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

#include "../core/error.hpp"

namespace taut::cpu::onednn {

/// Throws `DeviceError`, which names `call`, unless `status` is success.
inline void check(dnnl_status_t status, const char* call) {
  if (status != dnnl_success) throw DeviceError(call, status);
}

/// Owns a handle of oneDNN's C interface.
template <class T, dnnl_status_t (*destroy)(T)> class Handle {
 public:
  Handle() = default;
  explicit Handle(T handle) : handle_(handle) {}

  T get() const { return handle_.get(); }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  struct Destroy {
    void operator()(T handle) const { destroy(handle); }
  };
  std::unique_ptr<std::remove_pointer_t<T>, Destroy> handle_;
};

using Engine = Handle<dnnl_engine_t, dnnl_engine_destroy>;
using Stream = Handle<dnnl_stream_t, dnnl_stream_destroy>;
using Memory = Handle<dnnl_memory_t, dnnl_memory_destroy>;
using PrimitiveDescriptor = Handle<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using Primitive = Handle<dnnl_primitive_t, dnnl_primitive_destroy>;

/// The engine and the stream of one thread. oneDNN's objects are used only by the thread that made them: its
/// primitives may share scratch memory otherwise.
struct Session {
  Engine engine;
  Stream stream;

  static Session& of_this_thread() {
    thread_local Session session;
    return session;
  }

 private:
  [[gnu::cold]] Session() {
    dnnl_engine_t new_engine = nullptr;
    check(dnnl_engine_create(&new_engine, dnnl_cpu, 0), "dnnl_engine_create");
    engine = Engine(new_engine);
    dnnl_stream_t new_stream = nullptr;
    check(dnnl_stream_create(&new_stream, new_engine, dnnl_stream_default_flags), "dnnl_stream_create");
    stream = Stream(new_stream);
  }
};

/// The shape and layout of an operand of floats; a default-constructed one stands for no operand.
class Descriptor {
 public:
#if DNNL_VERSION_MAJOR >= 3
  using Pointer = const_dnnl_memory_desc_t;
#else
  using Pointer = const dnnl_memory_desc_t*;
#endif

  Descriptor() = default;

  /// Dimension d has `dims[d]` elements, `strides[d]` apart.
  Descriptor(std::initializer_list<std::int64_t> dims, std::initializer_list<std::int64_t> strides) {
    const int rank = static_cast<int>(dims.size());
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t made = nullptr;
    check(dnnl_memory_desc_create_with_strides(&made, rank, dims.begin(), dnnl_f32, strides.begin()),
          "dnnl_memory_desc_create_with_strides");
    value_ = decltype(value_)(made);
#else
    check(dnnl_memory_desc_init_by_strides(&value_, rank, dims.begin(), dnnl_f32, strides.begin()),
          "dnnl_memory_desc_init_by_strides");
    present_ = true;
#endif
  }

  /// A layout that oneDNN has a name for; `dnnl_format_tag_any` leaves the choice to it.
  Descriptor(std::span<const std::int64_t> dims, dnnl_format_tag_t tag) {
    const int rank = static_cast<int>(dims.size());
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t made = nullptr;
    check(dnnl_memory_desc_create_with_tag(&made, rank, dims.data(), dnnl_f32, tag),
          "dnnl_memory_desc_create_with_tag");
    value_ = decltype(value_)(made);
#else
    check(dnnl_memory_desc_init_by_tag(&value_, rank, dims.data(), dnnl_f32, tag),
          "dnnl_memory_desc_init_by_tag");
    present_ = true;
#endif
  }

  /// A copy of one of oneDNN's own.
  explicit Descriptor(Pointer other) {
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t made = nullptr;
    check(dnnl_memory_desc_clone(&made, other), "dnnl_memory_desc_clone");
    value_ = decltype(value_)(made);
#else
    value_ = *other;
    present_ = true;
#endif
  }

  Pointer get() const {
#if DNNL_VERSION_MAJOR >= 3
    return value_.get();
#else
    return present_ ? &value_ : nullptr;
#endif
  }

  std::size_t bytes() const { return dnnl_memory_desc_get_size(get()); }

 private:
#if DNNL_VERSION_MAJOR >= 3
  Handle<dnnl_memory_desc_t, dnnl_memory_desc_destroy> value_;
#else
  dnnl_memory_desc_t value_{};
  bool present_ = false;
#endif
};

inline bool operator==(const Descriptor& a, const Descriptor& b) {
  return dnnl_memory_desc_equal(a.get(), b.get()) != 0;
}

/// A memory object without data; `set_data` gives it some.
inline Memory make_memory(const Descriptor& descriptor) {
  dnnl_memory_t memory = nullptr;
  check(
      dnnl_memory_create(&memory, descriptor.get(), Session::of_this_thread().engine.get(), DNNL_MEMORY_NONE),
      "dnnl_memory_create");
  return Memory(memory);
}

inline void set_data(const Memory& memory, const void* data) {
  // oneDNN's interface has one type of pointer for inputs and outputs; it does not write to inputs.
  check(dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data)), "dnnl_memory_set_data_handle");
}

inline Primitive make_primitive(const PrimitiveDescriptor& descriptor) {
  dnnl_primitive_t primitive = nullptr;
  check(dnnl_primitive_create(&primitive, descriptor.get()), "dnnl_primitive_create");
  return Primitive(primitive);
}

/// The layout of an operand that a primitive has settled on.
inline Descriptor query(const PrimitiveDescriptor& primitive, dnnl_query_t what) {
  return Descriptor(dnnl_primitive_desc_query_md(primitive.get(), what, 0));
}

/// Copies from one layout to another.
inline PrimitiveDescriptor reorder_descriptor(const Descriptor& from, const Descriptor& to) {
  const dnnl_engine_t engine = Session::of_this_thread().engine.get();
  dnnl_primitive_desc_t made = nullptr;
  check(dnnl_reorder_primitive_desc_create(&made, from.get(), engine, to.get(), engine, nullptr),
        "dnnl_reorder_primitive_desc_create");
  return PrimitiveDescriptor(made);
}

/// C = A B + bias; a default-constructed `bias` stands for none.
inline PrimitiveDescriptor matmul_descriptor(const Descriptor& a, const Descriptor& b, const Descriptor& bias,
                                             const Descriptor& c) {
  const dnnl_engine_t engine = Session::of_this_thread().engine.get();
  dnnl_primitive_desc_t made = nullptr;
#if DNNL_VERSION_MAJOR >= 3
  check(dnnl_matmul_primitive_desc_create(&made, engine, a.get(), b.get(), bias.get(), c.get(), nullptr),
        "dnnl_matmul_primitive_desc_create");
#else
  dnnl_matmul_desc_t operation;
  check(dnnl_matmul_desc_init(&operation, a.get(), b.get(), bias.get(), c.get()), "dnnl_matmul_desc_init");
  check(dnnl_primitive_desc_create(&made, &operation, nullptr, engine, nullptr),
        "dnnl_primitive_desc_create");
#endif
  return PrimitiveDescriptor(made);
}

/// Runs a primitive to its end on the calling thread's stream.
inline void execute(const Primitive& primitive, int count, const dnnl_exec_arg_t* arguments) {
  const dnnl_stream_t stream = Session::of_this_thread().stream.get();
  check(dnnl_primitive_execute(primitive.get(), stream, count, arguments), "dnnl_primitive_execute");
  check(dnnl_stream_wait(stream), "dnnl_stream_wait");
}

}  // namespace taut::cpu::onednn

#endif  // TAUT_HAS_ONEDNN
