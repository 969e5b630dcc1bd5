#pragma once

#include <cstdint>

#include "formats/packed_matrix.h"

namespace verbatim {

// The blocks of the types Q2_K to Q6_K: as floats (BlockType::dequantize), and taken apart for the format
// `k-quants` (BlockType::take_apart).

void dequantize_q2_k(const uint8_t* block, float* out);
void dequantize_q3_k(const uint8_t* block, float* out);
void dequantize_q4_k(const uint8_t* block, float* out);
void dequantize_q5_k(const uint8_t* block, float* out);
void dequantize_q6_k(const uint8_t* block, float* out);

void take_apart_q2_k(const uint8_t* block, KQuantBlock* out);
void take_apart_q3_k(const uint8_t* block, KQuantBlock* out);
void take_apart_q4_k(const uint8_t* block, KQuantBlock* out);
void take_apart_q5_k(const uint8_t* block, KQuantBlock* out);
void take_apart_q6_k(const uint8_t* block, KQuantBlock* out);

}  // namespace verbatim
