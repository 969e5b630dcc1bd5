#pragma once

#include "layer_graph.h"

namespace verbatim::train {

/// The makers of graphs, from the library verbatim-gradients.so in the folder of this program or the one
/// above it, which is loaded at the first call. It is loaded apart because LibTorch and SentencePiece bring
/// the same symbols of different versions of Protocol Buffers. Throws Error(kMachine) if it cannot be loaded.
const GraphMakers& graph_makers();

/// The makers in one type.
template <typename T>
const GraphMaker<T>& graph_maker();
template <>
inline const GraphMaker<float>& graph_maker() {
  return graph_makers().in_float;
}
template <>
inline const GraphMaker<double>& graph_maker() {
  return graph_makers().in_double;
}

}  // namespace verbatim::train
