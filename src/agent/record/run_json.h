#pragma once

#include "agent/json.h"
#include "agent/model/endpoint.h"
#include "agent/run/run_options.h"
#include "agent/tools/tool.h"

namespace verbatim::agent {

inline constexpr int kRecordingVersion = 1;

// Plain data as JSON and back. What is read must be of the right shape: Json::exception says otherwise.

/// A whole number, none so large that a few of them would overflow. Throws Error(kBadInput) otherwise.
int64_t whole_of(const Json& json);

Json json_of(const ModelReply& reply);
ModelReply reply_of(const Json& json);
Json json_of(const ToolResult& result);
ToolResult result_of(const Json& json);
Json json_of(const RunOptions& options);
RunOptions options_of(const Json& json);
/// A tool without what it does.
Json json_of(const ToolEntry& entry);
/// The entry without its tool; `declaration` becomes the tool's.
ToolEntry entry_of(const Json& json, ToolDeclaration& declaration);

}  // namespace verbatim::agent
