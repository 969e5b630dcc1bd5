#pragma once

#include <cstdint>

namespace verbatim {

// The codebooks of the GGUF types whose names begin with IQ2 and IQ3. A code of such a type is the index of
// an entry, and an entry is a short vector of magnitudes: of eight with two bits each, or of four with three
// bits each, the first in the lowest bits. The entries of every codebook ascend.

extern const uint16_t kCodebookIQ2_XXS[256];
extern const uint16_t kCodebookIQ2_XS[512];
extern const uint16_t kCodebookIQ2_S[1024];
extern const uint16_t kCodebookIQ3_XXS[256];
extern const uint16_t kCodebookIQ3_S[512];

}  // namespace verbatim
