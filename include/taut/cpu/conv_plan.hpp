#pragma once
// Convolution primitives of oneDNN, and what they are called with. Without TAUT_HAS_ONEDNN this header is
// empty.

#include "array.hpp"
#include "conv_geometry.hpp"
#include "numbering.hpp"
#include "onednn.hpp"

#if TAUT_HAS_ONEDNN

#include <algorithm>

namespace taut::cpu {

namespace detail {

enum class ConvKind : std::uint8_t { forward, data, weight };

/// All that a primitive depends on.
struct ConvKey {
  ConvGeometry geometry;
  ConvKind kind = ConvKind::forward;
  bool bias = false;
  int threads = 1;

  friend bool operator==(const ConvKey&, const ConvKey&) = default;
};

struct ConvHash {
  std::size_t operator()(const ConvKey& key) const {
    const ConvGeometry& g = key.geometry;
    std::uint64_t hash = static_cast<std::uint64_t>(key.kind) + 4 * key.bias;
    for (const std::int64_t x :
         {g.n, g.c, g.h, g.w, g.out, g.kh, g.kw, g.groups, g.stride.h, g.stride.w, g.padding.h, g.padding.w,
          g.dilation.h, g.dilation.w, std::int64_t{key.threads}})
      hash = (hash ^ static_cast<std::uint64_t>(x)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
    return hash;
  }
};

/// The layouts of a convolution's images: blocked by what a SIMD register holds where the channels fill
/// blocks, dense otherwise. oneDNN has fast code for these combinations.
struct ConvLayouts {
  Layout x = Layout::dense, y = Layout::dense;

  explicit ConvLayouts(const ConvGeometry& g) {
    static const bool wide = [] {
      const auto isa = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
      return (isa & static_cast<unsigned>(dnnl_cpu_isa_avx512_core)) == dnnl_cpu_isa_avx512_core;
    }();
    const std::int64_t block = wide ? 16 : 8;
    const Layout blocked = wide ? Layout::blocked16 : Layout::blocked8;
    const bool fits_y = g.out % block == 0 && (g.groups == 1 || g.out / g.groups % block == 0);
    const bool fits_x = g.c % block == 0 && (g.groups == 1 || g.c / g.groups % block == 0);
    const bool depthwise = g.groups > 1 && g.groups == g.c && g.out == g.c && g.c % block == 0;
    if ((fits_y && (fits_x || (g.groups == 1 && g.c <= 4))) || depthwise) y = blocked;
    if ((fits_y && fits_x) || depthwise) x = blocked;
  }
};

inline dnnl_format_tag_t tag_of(Layout layout) {
  switch (layout) {
    case Layout::dense:
      return dnnl_nchw;
    case Layout::channels_last:
      return dnnl_nhwc;
    case Layout::blocked8:
      return dnnl_nChw8c;
    case Layout::blocked16:
      return dnnl_nChw16c;
  }
  return dnnl_nchw;
}

/// A number for each layout of kernels that oneDNN has asked for, so that arrays can keep forms under it.
inline std::uint64_t layout_number(const onednn::Descriptor& descriptor) {
  static Numbering<onednn::Descriptor> layouts(1 << 8);  // above those of `Layout`
  return layouts.of(onednn::Descriptor(descriptor.get()));
}

/// A convolution's kernels in a layout, which has another name where there are groups.
inline onednn::Descriptor kernel_descriptor(const ConvGeometry& g, dnnl_format_tag_t tag,
                                            dnnl_format_tag_t grouped_tag) {
  const std::int64_t dims[] = {g.groups, g.out / g.groups, g.c / g.groups, g.kh, g.kw};
  const std::span<const std::int64_t> all(dims);
  return g.groups > 1 ? onednn::Descriptor(all, grouped_tag) : onednn::Descriptor(all.subspan(1), tag);
}

/// The primitive descriptor of a direct convolution. Throws `DeviceError` if oneDNN has no such one.
inline onednn::PrimitiveDescriptor conv_descriptor(const ConvKey& key) {
  constexpr dnnl_alg_kind_t algorithm = dnnl_convolution_direct;
  const ConvGeometry& g = key.geometry;
  const ConvLayouts layouts(g);
  const std::int64_t x_dims[] = {g.n, g.c, g.h, g.w}, y_dims[] = {g.n, g.out, g.oh, g.ow},
                     bias_dims[] = {g.out};
  using D = onednn::Descriptor;
  const D x(x_dims, tag_of(layouts.x)), y(y_dims, tag_of(layouts.y));
  const D kernels = kernel_descriptor(g, dnnl_format_tag_any, dnnl_format_tag_any);
  const D bias = key.bias ? D(bias_dims, dnnl_a) : D();
  const std::int64_t strides[] = {g.stride.h, g.stride.w}, dilates[] = {g.dilation.h - 1, g.dilation.w - 1},
                     before[] = {g.padding.h, g.padding.w},
                     after[] = {(g.oh - 1) * g.stride.h + g.dilation.h * (g.kh - 1) + 1 - g.h - g.padding.h,
                                (g.ow - 1) * g.stride.w + g.dilation.w * (g.kw - 1) + 1 - g.w - g.padding.w};
  dnnl_primitive_attr_t attributes = nullptr;
  onednn::check(dnnl_primitive_attr_create(&attributes), "dnnl_primitive_attr_create");
  const onednn::Handle<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy> owner(attributes);
  onednn::check(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
                "dnnl_primitive_attr_set_scratchpad_mode");
  const dnnl_engine_t engine = onednn::Session::of_this_thread().engine.get();
  dnnl_primitive_desc_t forward = nullptr, made = nullptr;
#if DNNL_VERSION_MAJOR >= 3
  const auto forward_status = dnnl_convolution_forward_primitive_desc_create(
      &forward, engine, dnnl_forward_training, algorithm, x.get(), kernels.get(), bias.get(), y.get(),
      strides, dilates, before, after, attributes);
#else
  dnnl_convolution_desc_t operation;
  auto forward_status = dnnl_dilated_convolution_forward_desc_init(
      &operation, dnnl_forward_training, algorithm, x.get(), kernels.get(), bias.get(), y.get(), strides,
      dilates, before, after);
  if (forward_status == dnnl_success)
    forward_status = dnnl_primitive_desc_create(&forward, &operation, attributes, engine, nullptr);
#endif
  onednn::check(forward_status, "dnnl_convolution_forward_primitive_desc_create");
  onednn::PrimitiveDescriptor result(forward);
  if (key.kind == ConvKind::forward) return result;
#if DNNL_VERSION_MAJOR >= 3
  const auto status = key.kind == ConvKind::data
                          ? dnnl_convolution_backward_data_primitive_desc_create(
                                &made, engine, algorithm, x.get(), kernels.get(), y.get(), strides, dilates,
                                before, after, forward, attributes)
                          : dnnl_convolution_backward_weights_primitive_desc_create(
                                &made, engine, algorithm, x.get(), kernels.get(), nullptr, y.get(), strides,
                                dilates, before, after, forward, attributes);
#else
  auto status =
      key.kind == ConvKind::data
          ? dnnl_dilated_convolution_backward_data_desc_init(&operation, algorithm, x.get(), kernels.get(),
                                                             y.get(), strides, dilates, before, after)
          : dnnl_dilated_convolution_backward_weights_desc_init(&operation, algorithm, x.get(), kernels.get(),
                                                                nullptr, y.get(), strides, dilates, before,
                                                                after);
  if (status == dnnl_success)
    status = dnnl_primitive_desc_create(&made, &operation, attributes, engine, forward);
#endif
  onednn::check(status, "dnnl_convolution_backward_primitive_desc_create");
  return onednn::PrimitiveDescriptor(made);
}

/// A convolution primitive and the memory objects that it is called with, whose data change with each call.
class ConvPlan {
 public:
  explicit ConvPlan(const ConvKey& key) : ConvPlan(key, conv_descriptor(key)) {}

  ConvPlan(const ConvKey& key, const onednn::PrimitiveDescriptor& descriptor)
      : kind_(key.kind), kernels_(onednn::query(descriptor, kernel_query(key.kind))) {
    const ConvGeometry& g = key.geometry;
    const auto dense = kernel_descriptor(g, dnnl_oihw, dnnl_goihw);
    primitive_ = onednn::make_primitive(descriptor);
    const bool forward = kind_ == ConvKind::forward;
    add(forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST,
        onednn::query(descriptor, forward ? dnnl_query_src_md : dnnl_query_diff_dst_md));
    if (kind_ == ConvKind::weight) {
      add(DNNL_ARG_SRC, onednn::query(descriptor, dnnl_query_src_md));
      add(DNNL_ARG_DIFF_WEIGHTS, kernels_);
    } else {
      add(DNNL_ARG_WEIGHTS, kernels_);
      add(forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC,
          onednn::query(descriptor, forward ? dnnl_query_dst_md : dnnl_query_diff_src_md));
    }
    const auto scratchpad = onednn::query(descriptor, dnnl_query_scratchpad_md);
    scratch_bytes_ = scratchpad.bytes();
    add(DNNL_ARG_SCRATCHPAD, scratchpad);
    if (key.bias) add(DNNL_ARG_BIAS, onednn::Descriptor({g.out}, {1}));
    same_ = kernels_ == dense;
    if (!same_) {
      const bool out = kind_ == ConvKind::weight;
      const auto reorder = onednn::reorder_descriptor(out ? kernels_ : dense, out ? dense : kernels_);
      reorder_ = onednn::make_primitive(reorder);
      reorder_from_ = onednn::make_memory(out ? kernels_ : dense);
      reorder_to_ = onednn::make_memory(out ? dense : kernels_);
    }
    number_ = layout_number(kernels_);
  }

  /// out = the convolution or gradient of a and b, in the order of the operator's operands.
  void run(const float* a, const CpuArray& b, const float* b_image, const float* bias, float* out) const {
    Buffer keep;
    onednn::set_data(memory_[0], a);
    if (kind_ == ConvKind::weight) {
      onednn::set_data(memory_[1], b_image);
      if (!same_) keep = Buffer::allocate(kernels_.bytes());
      onednn::set_data(memory_[2], same_ ? static_cast<void*>(out) : keep.data());
    } else {
      if (!same_) keep = reordered(b);
      onednn::set_data(memory_[1], same_ ? static_cast<const void*>(b.data()) : keep.data());
      onednn::set_data(memory_[2], out);
    }
    const Buffer scratch = Buffer::allocate(scratch_bytes_);
    onednn::set_data(memory_[3], scratch.data());
    if (bias) onednn::set_data(memory_[4], bias);
    onednn::execute(primitive_, bias ? 5 : 4, arguments_);
    if (kind_ == ConvKind::weight && !same_) reorder(keep.data(), out);
  }

 private:
  static dnnl_query_t kernel_query(ConvKind kind) {
    return kind == ConvKind::weight ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
  }

  void add(int name, const onednn::Descriptor& descriptor) {
    memory_[count_] = onednn::make_memory(descriptor);
    arguments_[count_] = {name, memory_[count_].get()};
    ++count_;
  }

  void reorder(const void* from, void* to) const {
    onednn::set_data(reorder_from_, from);
    onednn::set_data(reorder_to_, to);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, reorder_from_.get()},
                                         {DNNL_ARG_TO, reorder_to_.get()}};
    onednn::execute(reorder_, 2, arguments);
  }

  /// The kernels in the primitive's layout, kept with them.
  Buffer reordered(const CpuArray& kernels) const {
    FormKey key{number_, {}};
    std::copy(kernels.shape().begin(), kernels.shape().end(), key.extents);
    return kernels.buffer().form_or(key, [&] {
      kernel_conversions.fetch_add(1, std::memory_order_relaxed);
      auto form = Buffer::allocate(kernels_.bytes());
      reorder(kernels.data(), form.data());
      return form;
    });
  }

  ConvKind kind_;
  onednn::Descriptor kernels_;
  onednn::Primitive primitive_, reorder_;
  onednn::Memory memory_[5], reorder_from_, reorder_to_;
  dnnl_exec_arg_t arguments_[5];
  int count_ = 0;
  bool same_ = false;  ///< the primitive takes dense kernels
  std::size_t scratch_bytes_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace detail

}  // namespace taut::cpu

#endif  // TAUT_HAS_ONEDNN
