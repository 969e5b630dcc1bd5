#pragma once

#include <array>
#include <string_view>

namespace verbatim::accelerator {

/// What SPEQ prints of a model on a task: tables II and III.
struct Claim {
  std::string_view model;  ///< of paper_shapes()
  std::string_view task;
  double draft_length;
  double acceptance;
  double speedup;  ///< over FP16
};

inline constexpr std::array<Claim, 15> kClaims = {{
    {"vicuna-7b", "HumanEval", 8.02, 0.968, 2.05},
    {"vicuna-7b", "MT-bench", 8.40, 0.964, 2.03},
    {"vicuna-7b", "GSM8K", 7.48, 0.977, 2.12},
    {"llama2-7b", "HumanEval", 6.05, 0.981, 2.11},
    {"llama2-7b", "MT-bench", 4.47, 0.986, 2.04},
    {"llama2-7b", "GSM8K", 6.38, 0.987, 2.16},
    {"llama3.1-8b", "HumanEval", 5.10, 0.975, 2.01},
    {"llama3.1-8b", "MT-bench", 5.69, 0.979, 2.08},
    {"llama3.1-8b", "GSM8K", 5.31, 0.967, 2.00},
    {"llama3.2-3b", "HumanEval", 5.61, 0.953, 1.93},
    {"llama3.2-3b", "MT-bench", 6.05, 0.978, 2.09},
    {"llama3.2-3b", "GSM8K", 4.83, 0.964, 1.96},
    {"llama2-13b", "HumanEval", 5.80, 0.986, 2.13},
    {"llama2-13b", "MT-bench", 6.61, 0.992, 2.21},
    {"llama2-13b", "GSM8K", 6.57, 0.991, 2.19},
}};

/// Tokens that each of these generated, section V-B.
inline constexpr int64_t kClaimedTokens = 256;

/// What SPEQ prints of figures 7 and 8: its speed, and its energy efficiency, over another machine's; 0: it
/// prints no number.
struct ClaimedGain {
  std::string_view machine;
  double speedup;
  double energy;
};

inline constexpr std::array<ClaimedGain, 5> kClaimedGains = {{
    {"fp16", 2.07, 1.74},
    {"olive-8", 1.53, 1.35},
    {"tender-8", 1.45, 1.32},
    {"olive-4", 0, 0},
    {"tender-4", 0, 0},
}};

/// Table IV: percent of the area, and of the power in both modes.
struct ClaimedPart {
  std::string_view part;
  double area;
  double draft_power;
  double full_power;
};

inline constexpr std::array<ClaimedPart, 5> kClaimedParts = {{
    {"PE", 39.4, 36.5, 40.0},
    {"decoder", 3.5, 3.2, 3.1},
    {"SRAM", 35.1, 32.1, 30.2},
    {"VPU", 14.8, 15.3, 14.5},
    {"others", 7.2, 12.9, 12.2},
}};
inline constexpr double kClaimedArea = 6.3;          // mm2
inline constexpr double kClaimedDraftPower = 508.0;  // mW
inline constexpr double kClaimedFullPower = 559.0;   // mW

/// Td/Tar that makes equation 2 give table III from table II where Tv is Tar. Fitted by us.
inline constexpr double kFittedDraftTime = 0.357;

}  // namespace verbatim::accelerator
