/* A library that a program has loaded for all to see, with another fmt and another libcrypto. A library that takes a symbol from
 * here ends the process. */
#include <stdio.h>
#include <stdlib.h>

#define STRANGER(function, symbol)                      \
  void function(void) __asm__(symbol);                  \
  void function(void) {                                 \
    fputs("called the neighbour's " symbol "\n", stderr); \
    abort();                                            \
  }

STRANGER(vformat,
         "_ZN3fmt2v97vformatB5cxx11ENS0_17basic_string_viewIcEENS0_17basic_format_argsINS0_20basic_format_contextINS0_"
         "8appenderEcEEEE")
STRANGER(throw_format_error, "_ZN3fmt2v96detail18throw_format_errorEPKc")
STRANGER(is_printable, "_ZN3fmt2v96detail12is_printableEj")
STRANGER(new_context, "EVP_MD_CTX_new")
STRANGER(free_context, "EVP_MD_CTX_free")
STRANGER(sha256, "EVP_sha256")
STRANGER(digest_init, "EVP_DigestInit_ex")
STRANGER(digest_update, "EVP_DigestUpdate")
STRANGER(digest_final, "EVP_DigestFinal_ex")
STRANGER(allocate, "CRYPTO_malloc")
STRANGER(zeroed, "CRYPTO_zalloc")
STRANGER(init, "OPENSSL_init_crypto")
/* And the C++ API of another version. */
STRANGER(cpp_version, "_ZN10tilewright7versionEv")
STRANGER(cpp_validate, "_ZN10tilewright8validateERKNS_4SpecE")
