#include <taut/cpu/cpu.hpp>
#include <taut/interpret/profiled.hpp>

#include "session_impl.hpp"

template std::unique_ptr<bench::Session> bench::make_session<taut::Profiled<taut::CpuArray>>(Start);
