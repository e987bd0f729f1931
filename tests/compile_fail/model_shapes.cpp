// expect: linear: the last dimension of the input must be the second of the weight, [out, in]
// A model's input does not fit its first layer; the compiler's trace walks down to the operator that
// disagrees.
#include <taut/taut.hpp>

using namespace taut;

template <BlasTensor T> struct Mlp {
  nn::Linear<T> hidden, out;
  constexpr T operator()(const T& x) const { return out(tanh(hidden(x))); }
};

constexpr Mlp<ShapeTensor> shapes{nn::Linear<ShapeTensor>::make(784, 128),
                                  nn::Linear<ShapeTensor>::make(128, 10)};
#ifdef CONTROL
constexpr int inputs = 784;
#else
constexpr int inputs = 783;
#endif
static_assert(shapes(ShapeTensor{{64, inputs}}).shape() == Shape{64, 10});

int main() {}
