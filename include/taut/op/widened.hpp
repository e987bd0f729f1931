#pragma once
// `Widened<T>`: in which type of tensors running values are kept, such as statistics and weights that take
// small updates, where T's elements have too few digits for them.

#include "operator.hpp"

namespace taut {

/// The leaf whose elements hold the running values of a leaf: the leaf itself. One that stores its elements
/// in fewer bits than `float` specializes this.
template <class Leaf> struct WideLeaf { using type = Leaf; };

namespace detail {

template <class T, class Leaf = LeafOf<T>, class Wide = typename WideLeaf<Leaf>::type> struct WidenedOf {
  using type = Wide;
};
template <class T, class Leaf> struct WidenedOf<T, Leaf, Leaf> { using type = T; };

}  // namespace detail

/// T itself, unless the leaf inside it is a narrow one: then the wide leaf, without the interpretations that
/// T wraps around its own, as with index tensors. So it is a constant to `Grad`. Of both
/// `BasicCudaTensor<bfloat16>` and `Grad` of it, that is `CudaTensor`.
template <class T> using Widened = typename detail::WidenedOf<T>::type;

}  // namespace taut
