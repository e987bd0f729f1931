#pragma once
// Whether the program is compiled with AddressSanitizer, which allocators of one's own have to heed.

#if defined(__SANITIZE_ADDRESS__)
#define TAUT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAUT_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef TAUT_ADDRESS_SANITIZER
#define TAUT_ADDRESS_SANITIZER 0
#endif
