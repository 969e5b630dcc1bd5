#include "templates/built_in.h"

#include "base/error.h"
#include "verbatim/chat.h"

namespace verbatim::jinja {

namespace {

// Macros that the built-in templates share. The content of a message is a text, or a list of parts with a
// text each. A tool may stand by itself or inside {"type": "function"}, a call may too, and its arguments may
// be an object or JSON.
#define VERBATIM_TEMPLATE_MACROS                                                                        \
  "{%- macro content_of(message) -%}\n"                                                                 \
  "  {%- if message.content is string -%}{{- message.content -}}\n"                                     \
  "  {%- elif message.content -%}\n"                                                                    \
  "    {%- for part in message.content if part.text is string -%}{{- part.text -}}{%- endfor -%}\n"     \
  "  {%- endif -%}\n"                                                                                   \
  "{%- endmacro -%}\n"                                                                                  \
  "{%- macro call_of(call, key) -%}\n"                                                                  \
  "  {%- set call = call.function if call.function is defined else call -%}\n"                          \
  "  {{- '{\"name\": ' ~ (call.name | tojson) ~ ', \"' ~ key ~ '\": ' -}}\n"                            \
  "  {{- (call.arguments if call.arguments is string else (call.arguments or {}) | tojson) ~ '}' -}}\n" \
  "{%- endmacro -%}\n"

constexpr std::string_view kChatml = VERBATIM_TEMPLATE_MACROS R"(
{%- set system = namespace(text='', found=false) -%}
{%- if messages and messages[0].role == 'system' -%}
  {%- set system.text = content_of(messages[0]) -%}
  {%- set system.found = true -%}
{%- endif -%}
{%- if tools -%}
  {{- '<|im_start|>system\n' -}}
  {%- if system.text -%}{{- system.text ~ '\n\n' -}}{%- endif -%}
  {{- 'You can call the functions whose signatures stand between <tools> and </tools>:\n<tools>' -}}
  {%- for tool in tools -%}{{- '\n' ~ (tool | tojson) -}}{%- endfor -%}
  {{- '\n</tools>\nTo call one, answer with its name and arguments as JSON, each call between tags of its own:\n' -}}
  {{- '<tool_call>\n{"name": "the name", "arguments": {"the argument": "its value"}}\n</tool_call><|im_end|>\n' -}}
{%- elif system.text -%}
  {{- '<|im_start|>system\n' ~ system.text ~ '<|im_end|>\n' -}}
{%- endif -%}
{%- for message in (messages[1:] if system.found else messages) -%}
  {%- if message.role == 'tool' -%}
    {%- if loop.first or loop.previtem.role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}
    {{- '\n<tool_response>\n' ~ content_of(message) ~ '\n</tool_response>' -}}
    {%- if loop.last or loop.nextitem.role != 'tool' -%}{{- '<|im_end|>\n' -}}{%- endif -%}
  {%- else -%}
    {%- set content = content_of(message) -%}
    {{- '<|im_start|>' ~ message.role ~ '\n' ~ content -}}
    {%- for call in message.tool_calls or [] -%}
      {{- ('\n' if content or not loop.first else '') ~ '<tool_call>\n' ~ call_of(call, 'arguments') ~ '\n</tool_call>' -}}
    {%- endfor -%}
    {{- '<|im_end|>\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}
)";

constexpr std::string_view kLlama3 = VERBATIM_TEMPLATE_MACROS R"(
{%- set system = namespace(text='', found=false) -%}
{%- if messages and messages[0].role == 'system' -%}
  {%- set system.text = content_of(messages[0]) -%}
  {%- set system.found = true -%}
{%- endif -%}
{%- if tools or system.text -%}
  {{- '<|start_header_id|>system<|end_header_id|>\n\n' ~ system.text -}}
  {%- if tools -%}
    {{- ('\n\n' if system.text else '') ~ 'You can call these functions:\n' -}}
    {%- for tool in tools -%}{{- '\n' ~ (tool | tojson) ~ '\n' -}}{%- endfor -%}
    {{- '\nTo call one, answer with nothing but its name and arguments as JSON: ' -}}
    {{- '{"name": "the name", "parameters": {"the argument": "its value"}}' -}}
  {%- endif -%}
  {{- '<|eot_id|>' -}}
{%- endif -%}
{%- for message in (messages[1:] if system.found else messages) -%}
  {%- set role = 'ipython' if message.role == 'tool' else message.role -%}
  {{- '<|start_header_id|>' ~ role ~ '<|end_header_id|>\n\n' ~ content_of(message) -}}
  {%- for call in message.tool_calls or [] -%}
    {{- ('' if loop.first else '; ') ~ call_of(call, 'parameters') -}}
  {%- endfor -%}
  {{- '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}{%- endif -%}
)";

constexpr std::string_view kMistral = VERBATIM_TEMPLATE_MACROS R"(
{%- set state = namespace(system='', last=-1, first=true) -%}
{%- for message in messages if message.role != 'system' -%}
  {%- if message.role == 'user' -%}{%- set state.last = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for message in messages if message.role == 'system' -%}
  {%- set state.system = state.system ~ content_of(message) ~ '\n\n' if content_of(message) else state.system -%}
{%- endfor -%}
{%- for message in messages if message.role != 'system' -%}
  {%- if message.role == 'user' -%}
    {%- if tools and loop.index0 == state.last -%}
      {{- '[AVAILABLE_TOOLS]' ~ (tools | tojson) ~ '[/AVAILABLE_TOOLS]' -}}
    {%- endif -%}
    {{- '[INST] ' ~ (state.system if state.first else '') ~ content_of(message) ~ ' [/INST]' -}}
    {%- set state.first = false -%}
  {%- elif message.role == 'tool' -%}
    {{- '[TOOL_RESULTS]{"content": ' ~ (content_of(message) | tojson) -}}
    {%- if message.tool_call_id -%}{{- ', "call_id": ' ~ (message.tool_call_id | tojson) -}}{%- endif -%}
    {{- '}[/TOOL_RESULTS]' -}}
  {%- else -%}
    {{- content_of(message) -}}
    {%- if message.tool_calls -%}
      {{- '[TOOL_CALLS][' -}}
      {%- for call in message.tool_calls -%}
        {{- ('' if loop.first else ', ') ~ call_of(call, 'arguments')[:-1] -}}
        {%- if call.id -%}{{- ', "id": ' ~ (call.id | tojson) -}}{%- endif -%}
        {{- '}' -}}
      {%- endfor -%}
      {{- ']' -}}
    {%- endif -%}
    {{- '</s>' -}}
  {%- endif -%}
{%- endfor -%}
)";

// How models are told of tools that were never taught a form of their own.
#define VERBATIM_GENERIC_TOOLS                                                                              \
  "{%- macro tools_text() -%}\n"                                                                            \
  "  {{- 'You can call these functions:\\n' -}}\n"                                                          \
  "  {%- for tool in tools -%}{{- (tool | tojson) ~ '\\n' -}}{%- endfor -%}\n"                              \
  "  {{- 'To call some, answer with nothing but JSON: ' -}}\n"                                              \
  "  {{- '{\"tool_calls\": [{\"name\": \"the name\", \"arguments\": {\"the argument\": \"its value\"}}]}' " \
  "-}}\n"                                                                                                   \
  "{%- endmacro -%}\n"                                                                                      \
  "{%- macro reply_of(message) -%}\n"                                                                       \
  "  {{- content_of(message) -}}\n"                                                                         \
  "  {%- if message.tool_calls -%}\n"                                                                       \
  "    {{- '{\"tool_calls\": [' -}}\n"                                                                      \
  "    {%- for call in message.tool_calls -%}\n"                                                            \
  "      {{- ('' if loop.first else ', ') ~ call_of(call, 'arguments') -}}\n"                               \
  "    {%- endfor -%}\n"                                                                                    \
  "    {{- ']}' -}}\n"                                                                                      \
  "  {%- endif -%}\n"                                                                                       \
  "{%- endmacro -%}\n"

constexpr std::string_view kLlama2 = VERBATIM_TEMPLATE_MACROS VERBATIM_GENERIC_TOOLS R"(
{%- set state = namespace(system=tools_text() if tools else '', first=true, replied=false) -%}
{%- for message in messages if message.role == 'system' -%}
  {%- set state.system = content_of(message) ~ ('\n\n' ~ state.system if state.system else '') -%}
{%- endfor -%}
{%- for message in messages if message.role != 'system' -%}
  {%- if message.role == 'assistant' -%}
    {{- reply_of(message) -}}
    {%- set state.replied = true -%}
  {%- else -%}
    {{- ('</s><s>' if state.replied else '') ~ '[INST] ' -}}
    {%- if state.first and state.system -%}{{- '<<SYS>>\n' ~ state.system ~ '\n<</SYS>>\n\n' -}}{%- endif -%}
    {{- ('Result: ' if message.role == 'tool' else '') ~ content_of(message) ~ ' [/INST]' -}}
    {%- set state.first = false -%}
    {%- set state.replied = false -%}
  {%- endif -%}
{%- endfor -%}
)";

constexpr std::string_view kPlain = VERBATIM_TEMPLATE_MACROS VERBATIM_GENERIC_TOOLS R"(
{%- if tools -%}{{- tools_text() ~ '\n\n' -}}{%- endif -%}
{%- for message in messages -%}
  {%- if message.role == 'assistant' -%}
    {{- reply_of(message) ~ '\n\n' -}}
  {%- elif message.role == 'system' -%}
    {%- set content = content_of(message) -%}
    {%- if content -%}{{- content ~ '\n\n' -}}{%- endif -%}
  {%- else -%}
    {{- ('Result: ' if message.role == 'tool' else 'Question: ') ~ content_of(message) ~ '\nAnswer:' -}}
  {%- endif -%}
{%- endfor -%}
)";

}  // namespace

std::string_view built_in_template(std::string_view format) {
  const std::string name = chat_format(format).name;
  if (name == "chatml") return kChatml;
  if (name == "llama-3") return kLlama3;
  if (name == "llama-2") return kLlama2;
  return name == "mistral" ? kMistral : kPlain;
}

}  // namespace verbatim::jinja
