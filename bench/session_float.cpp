#include <taut/cpu/cpu.hpp>

#include "session_impl.hpp"

template std::unique_ptr<bench::Session> bench::make_session<taut::CpuArray>(Start);
