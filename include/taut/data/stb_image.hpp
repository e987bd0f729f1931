#pragma once
// The one door to stb_image, with which images are decoded. Nothing else includes it.
//
// stb_image is a source in one header. It is compiled into each program that includes this one, as functions
// private to the translation unit and in a namespace of their own: the program may use stb_image for itself,
// in this translation unit as well (but defines STB_IMAGE_IMPLEMENTATION in another one).

#ifndef TAUT_HAS_STB
#if __has_include(<stb/stb_image.h>)
#define TAUT_HAS_STB 1
#else
#define TAUT_HAS_STB 0
#endif
#endif

#if TAUT_HAS_STB

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace taut::data::detail::stb {

using ::abs;  // which Taut's own function of that name would hide

// The largest block that may be allocated on this thread, since compressed data can expand to any size,
// whatever size the image declares. Becomes 0 when a block is refused.
inline thread_local size_t allocation_limit = 0;

inline bool may_allocate(size_t size) {
  if (size > allocation_limit) allocation_limit = 0;
  return size <= allocation_limit;
}

// Memory is zero at first: damaged files make the decoder read what it has not written.
inline void* allocate(size_t size) { return may_allocate(size) ? calloc(1, size) : nullptr; }
inline void* reallocate(void* memory, size_t size) {
  return may_allocate(size) ? realloc(memory, size) : nullptr;
}

struct AssertionFailed {};
inline void check(bool ok) {
  if (!ok) throw AssertionFailed{};
}

#pragma push_macro("STBI_INCLUDE_STB_IMAGE_H")
#pragma push_macro("STBIDEF")
#undef STBI_INCLUDE_STB_IMAGE_H
#undef STBIDEF
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_FAILURE_USERMSG
#define STBI_ASSERT(condition) check(condition)
#define STBI_MALLOC(size) allocate(size)
#define STBI_REALLOC(memory, size) reallocate(memory, size)
#define STBI_FREE(memory) free(memory)
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <stb/stb_image.h>
#pragma GCC diagnostic pop
#undef STB_IMAGE_IMPLEMENTATION
#undef STB_IMAGE_STATIC
#undef STBI_ONLY_JPEG
#undef STBI_ONLY_PNG
#undef STBI_NO_BMP
#undef STBI_NO_PSD
#undef STBI_NO_TGA
#undef STBI_NO_GIF
#undef STBI_NO_HDR
#undef STBI_NO_PIC
#undef STBI_NO_PNM
#undef STBI_NO_STDIO
#undef STBI_NO_LINEAR
#undef STBI_FAILURE_USERMSG
#undef STBI_ASSERT
#undef STBI_MALLOC
#undef STBI_REALLOC
#undef STBI_REALLOC_SIZED
#undef STBI_FREE
#pragma pop_macro("STBIDEF")
#pragma pop_macro("STBI_INCLUDE_STB_IMAGE_H")

}  // namespace taut::data::detail::stb

#endif
