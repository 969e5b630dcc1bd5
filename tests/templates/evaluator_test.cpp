#include "templates/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/test_data.h"
#include "templates/parser.h"
#include "verbatim/chat_template.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using ::testing::HasSubstr;

std::string rendered(const std::string& source, const std::string& variables = "{}") {
  return jinja::render(jinja::parse(source), variables, {}, 0).bytes();
}

std::string problem(const std::string& source, const std::string& variables = "{}") {
  try {
    rendered(source, variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    return error.what();
  }
  ADD_FAILURE() << "no error: " << source;
  return {};
}

TEST(TemplateLanguage, CalculatesAsPythonDoes) {
  EXPECT_EQ(rendered("{{ 1 + 2 * 3 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 'a' ~ 1 ~ none }}"),
            "7 -4 2 3.5 a1None");
  EXPECT_EQ(rendered("{{ [1, 'b', {'k': 1.0}] }} {{ (1,) }} {{ 1 == 1.0 and not 2 in [1] }}"),
            "[1, 'b', {'k': 1.0}] (1,) True");
  EXPECT_EQ(rendered("{{ 'h\xC3\xA4\xC3\x9F'[::-1] }}{{ 'abcd'[1:-1] }}{{ [1, 2, 3][-1] }}"),
            "\xC3\x9F\xC3\xA4hbc3");
}

TEST(TemplateLanguage, LoopsKnowWhereTheyAre) {
  EXPECT_EQ(rendered("{% for i in [1, 2, 3] if i != 2 %}{{ loop.index }}:{{ i }}{{ ',' if not loop.last }}{% "
                     "else %}-{% endfor %}"),
            "1:1,2:3");
  EXPECT_EQ(rendered("{% for i in [] %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(rendered("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i > 3 %}{% break "
                     "%}{% endif %}{{ i }}{% endfor %}"),
            "023");
  EXPECT_EQ(
      rendered(
          "{% set n = namespace(a=0) %}{% for i in range(4) %}{% set n.a = n.a + i %}{% endfor %}{{ n.a }}"),
      "6");
}

TEST(TemplateLanguage, MacrosBlocksAndWhiteSpace) {
  EXPECT_EQ(rendered("{% macro m(a, b=2) %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, b=3) }}"),
            "[12][13]");
  EXPECT_EQ(rendered("{% set x | upper %}ab{% endset %}{{ x }}{% generation %}c{% endgeneration %}"), "ABc");
  EXPECT_EQ(rendered("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(rendered("a {%- if true -%} b {%- endif %} {# no #}{% raw %}{{ x }}{% endraw %}"), "ab {{ x }}");
}

TEST(TemplateLanguage, FiltersAndJsonAreThoseOfHuggingFace) {
  const std::string variables = R"({"m": [{"r": "u", "c": "<\u00e4>"}, {"r": "a", "c": null}]})";
  EXPECT_EQ(rendered("{{ m | tojson }}", variables),
            "[{\"r\": \"u\", \"c\": \"<\xC3\xA4>\"}, {\"r\": \"a\", \"c\": null}]");
  EXPECT_EQ(rendered("{{ [1] | tojson(indent=2) }}"), "[\n  1\n]");
  EXPECT_EQ(
      rendered(
          "{{ m | selectattr('r', 'equalto', 'u') | list | length }}{{ m | map(attribute='r') | join('-') }}",
          variables),
      "1u-a");
  EXPECT_EQ(rendered("{{ x | default('d') }}{{ ' a ' | trim }}{{ x is defined }}{{ x }}"), "daFalse");
}

TEST(TemplateLanguage, ErrorsNameTheLine) {
  EXPECT_THAT(problem("\n\n{{ x.y }}"), HasSubstr("line 3"));
  EXPECT_THAT(problem("\n{{ 1 | nonsense }}"), HasSubstr("line 2: there is no filter 'nonsense'"));
  EXPECT_THAT(problem("{% if x %}"), HasSubstr("endif"));
  EXPECT_THAT(problem("{% include 'x' %}"), HasSubstr("not known"));
  EXPECT_THAT(problem("{{ raise_exception('roles must alternate') }}"), HasSubstr("roles must alternate"));
  EXPECT_THAT(problem("{{ 1 // 0 }}"), HasSubstr("zero"));
  EXPECT_THAT(problem("x", "[1]"), HasSubstr("JSON object"));
}

TEST(TemplateBounds, EndHostileTemplates) {
  problem("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
  problem("{% set n = namespace(a='xx') %}{% for i in range(99) %}{% set n.a = n.a + n.a %}{% endfor %}");
  problem(
      "{% set n = namespace(a=[1]) %}{% for i in range(99) %}{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a "
      "}}");
  problem("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  problem("{% set l = [] %}{% set x = l.append(l) %}{{ l }}");
  problem("{{ 'x' * 999999999 }}");
  problem("{{ 'x'.join(other=[1]) }}");  // an argument of another name is none
  problem("{{ " + std::string(100000, '('));
  problem("{{ " + std::string(1000, '[') + " }}");
  problem(std::string(300000, 'x'));
  problem("x", "{\"a\": " + std::string(5000, '[') + std::string(5000, ']') + "}");
}

std::string origins(const std::string& source, const std::string& variables) {
  const jinja::TracedText text = jinja::render(jinja::parse(source), variables, {{"bos_token", "B"}}, 0);
  std::string marks;
  for (size_t i = 0; i < text.size(); ++i) marks += text.from_template_at(i) ? 't' : 'd';
  return marks;
}

TEST(TemplateOrigins, FollowTextThroughWhatIsDoneToIt) {
  const std::string variables = R"({"x": " ab ", "l": ["p", "q"], "bos_token": "no"})";
  EXPECT_EQ(origins("<{{ x }}>", variables), "tddddt");
  EXPECT_EQ(origins("{{ '<' + x.strip() + '>' }}", variables), "tddt");
  EXPECT_EQ(origins("{{ l | join(', ') }}", variables), "dttd");
  EXPECT_EQ(origins("{{ ('a' ~ x)[:3] | upper }}", variables), "tdd");
  EXPECT_EQ(origins("{{ x | replace('a', '**') }}", variables), "dttdd");
  EXPECT_EQ(origins("{{ l | tojson }}", variables), std::string(10, 'd'));
  EXPECT_EQ(origins("{{ bos_token }}{{ l[0] }}", variables), "td");
  EXPECT_EQ(origins("{% set t %}[{{ l[1] }}]{% endset %}{{ t }}", variables), "tdt");
}

TEST(BuiltInTemplates, WriteConversationsToolsAndCalls) {
  const std::string variables =
      R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"},
      {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"x": 1}}}]},
      {"role": "tool", "content": "4"}], "tools": [{"type": "function", "function": {"name": "f"}}], "add_generation_prompt": true})";
  const std::pair<const char*, const char*> expected[] = {
      {"chatml", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call><|im_end|>"},
      {"llama-3", "{\"name\": \"f\", \"parameters\": {\"x\": 1}}<|eot_id|>"},
      {"llama-2", "{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {\"x\": 1}}]}"},
      {"mistral", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"x\": 1}, \"id\": \"1\"}]"},
      {"plain", "{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {\"x\": 1}}]}"}};
  for (const auto& [format, text] : expected) {
    std::string all;
    for (const PromptPart& part : ChatTemplate::built_in(format).render(variables)) all += part.text;
    EXPECT_THAT(all, HasSubstr(text)) << format;
    EXPECT_TRUE(ChatTemplate::built_in(format).reads("tools"));
  }
}

TEST(PublicChatTemplates, RenderExactlyAsTheirAuthorsMeant) {
  const std::filesystem::path data = test::public_data();
  if (data.empty()) GTEST_SKIP() << "VERBATIM_TEST_DATA is not set";
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data / "chat-templates")) {
    const std::string name = entry.path().string();
    const std::string ending = ".expected.json";
    if (!name.ends_with(ending)) continue;
    const auto expected = nlohmann::ordered_json::parse(test::read_file(entry.path()));
    const ChatTemplate source(test::read_file(name.substr(0, name.size() - ending.size()) + ".jinja"));
    for (const auto& [key, text] : expected["expected"].items()) {
      nlohmann::ordered_json variables;
      variables["messages"] = expected["conversations"][key.substr(0, key.find('|'))];
      variables["add_generation_prompt"] = key.ends_with("True");
      variables["bos_token"] = expected["bos_token"];
      variables["eos_token"] = expected["eos_token"];
      std::string all;
      for (const PromptPart& part : source.render(variables.dump())) all += part.text;
      EXPECT_EQ(all, text.get<std::string>()) << name << " " << key;
      ++cases;
    }
  }
  EXPECT_GE(cases, 32);
}

TEST(TemplateLanguage, LoopsStayInsideAListThatShrinks) {
  EXPECT_EQ(rendered("{% set l = [1, 2, 3] %}{% for x in l %}{% if loop.index0 == 1 %}{% do l.clear() %}"
                     "[{{ loop.previtem }}{{ loop.nextitem }}]{% endif %}{% endfor %}"),
            "[]");
  EXPECT_EQ(rendered("{% set l = [1, 2, 3] %}{% for x in l %}{% if loop.index0 == 1 %}{{ l.pop() }}{{ "
                     "l.pop() }}[{{ loop.previtem }}{{ loop.nextitem }}]{% endif %}{% endfor %}"),
            "32[1]");
}

}  // namespace
}  // namespace verbatim
