#include "verbatim/machine.h"

#include <string_view>
#include <utility>

#include "base/cpu.h"
#include "base/processors.h"
#include "kernels/dispatch.h"

namespace verbatim {

MachineReport describe_machine() {
  const CpuFeatures& features = cpu_features();
  MachineReport report;
  report.cpu = features.model_name;
  for (const Isa isa : available_isas(features)) {
    report.instruction_sets.emplace_back(kernel_table(isa, features).name);
  }
  report.kernels = kernels().name;
  report.portable = std::string_view(kernels().rounding) == kPortableRounding;
  report.portable_kernels = portable_kernel_table(preferred_isa(), preferred_features()).name;
  ThreadChoice choice = choose_threads(describe_processors());
  report.threads = choice.threads;
  report.threads_reason = std::move(choice.reason);
  return report;
}

}  // namespace verbatim
