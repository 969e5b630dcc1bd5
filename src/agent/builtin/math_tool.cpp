#include <cmath>

#include "agent/builtin/arithmetic.h"
#include "agent/builtin/builtin_tools.h"
#include "agent/tools/instant_tool.h"

namespace verbatim::agent {

ToolEntry math_tool(Loop& loop) {
  ToolDeclaration declaration{
      .name = "math",
      .description =
          "The value of an arithmetic expression of numbers, such as \"(3 + 4.5) / 2\" or \"max(1, 2)\". "
          "Results of earlier tasks must be numbers.",
      .parameters = Json::parse(R"({"type": "object", "properties": {"expression": {"type": "string"}},
                                    "required": ["expression"], "additionalProperties": false})")};
  const auto compute = [](const Json& arguments) -> Json {
    const double value = arithmetic(arguments["expression"].get_ref<const std::string&>());
    constexpr double kExact = 9007199254740992.0;
    if (value == std::floor(value) && std::fabs(value) < kExact) return static_cast<int64_t>(value);
    return value;
  };
  return {.tool = std::make_shared<InstantTool>(loop, std::move(declaration), compute),
          .policy = Policy::kAllow,
          .idempotent = true,
          .limits = {.retries = 0}};
}

}  // namespace verbatim::agent
