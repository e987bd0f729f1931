// expect: Grad: the operator has no gradient rule
// An operator with neither a rule nor a decomposition is not differentiated silently as a constant.
#include <taut/taut.hpp>

using namespace taut;

namespace mine {
struct Reverse {
  static constexpr std::string_view name = "reverse";
  constexpr Shape shape(const Shape& x) const { return x; }
#ifdef CONTROL
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T&) const {
    return [](const T& g) { return eval(Reverse{}, g); };
  }
#endif
};

CpuArray eval(const Reverse&, const CpuArray& x) {
  auto values = x.to_host();
  std::reverse(values.begin(), values.end());
  return CpuArray::from_host(values, x.shape());
}
}  // namespace mine

int main() {
  const auto x = Grad<CpuArray>(CpuArray::ones({3})).track();
  Tape<CpuArray> tape;
  tape.backward(sum(eval(mine::Reverse{}, x)));
}
