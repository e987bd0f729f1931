#pragma once
// cuDNN's descriptors as values. Everything that its graph interface knows is a descriptor: an object of a
// kind whose attributes are set one by one before it is finalised, and read afterwards.

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "taut/core/error.hpp"

#if CUDNN_VERSION < 90800
#error "Taut needs cuDNN 9.8 or newer: older versions cannot describe a device"
#endif

namespace taut::cuda {

/// Throws a `DeviceError` with cuDNN's own words unless a call succeeded.
inline void check_cudnn(const char* call, cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char message[512] = "";
  cudnnGetLastErrorString(message, sizeof message);
  throw DeviceError(call, static_cast<int>(status),
                    std::string("cuda: ") + cudnnGetErrorString(status) + ": " + message);
}

/// Owns a descriptor of cuDNN's graph interface.
class Descriptor {
 public:
  using Attribute = cudnnBackendAttributeName_t;

  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t kind) {
    check_cudnn("cudnnBackendCreateDescriptor", cudnnBackendCreateDescriptor(kind, &descriptor_));
  }
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  /// Sets an attribute to one value or several of a type that cuDNN calls `type`.
  template <class X>
  Descriptor& set(Attribute name, cudnnBackendAttributeType_t type, std::initializer_list<X> values) {
    return set(name, type, values.begin(), values.size());
  }
  template <class X>
  Descriptor& set(Attribute name, cudnnBackendAttributeType_t type, const X* values, std::size_t count) {
    check_cudnn("cudnnBackendSetAttribute",
                cudnnBackendSetAttribute(descriptor_, name, type, static_cast<std::int64_t>(count), values));
    return *this;
  }
  Descriptor& set(Attribute name, std::initializer_list<std::int64_t> values) {
    return set(name, CUDNN_TYPE_INT64, values);
  }
  Descriptor& set(Attribute name, const Descriptor& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, {other.descriptor_});
  }

  /// Ends the setting of attributes. Throws if cuDNN does not take them.
  Descriptor& finalize() {
    check_cudnn("cudnnBackendFinalize", try_finalize());
    return *this;
  }
  cudnnStatus_t try_finalize() { return cudnnBackendFinalize(descriptor_); }

  /// Reads an attribute of one number.
  std::int64_t number(Attribute name) const {
    std::int64_t count = 0, value = 0;
    check_cudnn("cudnnBackendGetAttribute",
                cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_INT64, 1, &count, &value));
    return value;
  }

  /// Reads an attribute that is another descriptor, of the given kind.
  Descriptor part(Attribute name, cudnnBackendDescriptorType_t kind) const {
    Descriptor result(kind);
    std::int64_t count = 0;
    check_cudnn("cudnnBackendGetAttribute",
                cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                         &result.descriptor_));
    return result;
  }

  /// Reads an attribute that is a list of descriptors of the given kind.
  std::vector<Descriptor> parts(Attribute name, cudnnBackendDescriptorType_t kind) const {
    std::int64_t count = 0;
    check_cudnn(
        "cudnnBackendGetAttribute",
        cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
    std::vector<Descriptor> results;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (std::int64_t i = 0; i < count; ++i) raw.push_back(results.emplace_back(kind).descriptor_);
    std::int64_t found = 0;
    if (count > 0)
      check_cudnn("cudnnBackendGetAttribute",
                  cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &found,
                                           raw.data()));
    results.resize(static_cast<std::size_t>(found));
    return results;
  }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace taut::cuda
