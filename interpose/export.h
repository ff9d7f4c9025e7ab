// How this library defines a symbol of the C library: under a name of its own, so that the header's
// declaration (with its noexcept and nonnull promises to the optimiser) does not apply, and with
// the C library's name in the object file.
#pragma once

#define RELOCK_EXPORT(result, name, arguments)                                                     \
  extern "C" __attribute__((visibility("default"))) result relock_##name arguments __asm__(#name); \
  result relock_##name arguments

// A second name for a function that this file defines.
#define RELOCK_EXPORT_ALIAS(alias, name) \
  __asm__(".globl " #alias "\n.type " #alias ", @function\n.set " #alias ", " #name)
