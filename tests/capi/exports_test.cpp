#include <gmock/gmock.h>

#include <regex>
#include <set>

#include "support/run_program.h"
#include "verbatim/verbatim_c.h"

namespace verbatim::test {
namespace {

const std::filesystem::path kRepository = VERBATIM_SOURCE_DIR;

/// The symbols that the shared library exports, each as "symbol NAME@VERSION". The versions themselves, which
/// are symbols too, are left out.
std::vector<std::string> exported_symbols() {
  RunOptions options;
  options.program = VERBATIM_NM;
  const RunResult listing =
      run_program({"-D", "--defined-only", "--with-symbol-versions", VERBATIM_SHARED_LIBRARY}, options);
  EXPECT_EQ(listing.exit_code, 0) << listing.err;
  static const std::regex line(R"(^[0-9a-f]+ ([A-Za-z]) (\S+)$)");
  std::vector<std::string> symbols;
  for (const std::string& each : lines_of(listing.out)) {
    std::smatch match;
    if (std::regex_match(each, match, line) && match[1] != "A") {
      symbols.push_back("symbol " + std::regex_replace(match[2].str(), std::regex("@@"), "@"));
    }
  }
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

/// The declarations of the header, one on each line, without comments.
std::vector<std::string> declarations() {
  std::string text = read_file(kRepository / "include" / "verbatim" / "verbatim_c.h");
  for (size_t begin = 0; (begin = text.find("/*", begin)) != std::string::npos;) {
    text.erase(begin, text.find("*/", begin) + 2 - begin);
  }
  std::string code;
  for (const std::string& line : lines_of(text)) {
    if (line.rfind("#", 0) != 0 && line.rfind("extern \"C\"", 0) != 0) code += line + ' ';
  }
  code = std::regex_replace(code, std::regex("VERBATIM_C_API|\\s+"), " ");
  std::vector<std::string> found;
  std::string one;
  int depth = 0;
  for (const char character : code) {
    depth += character == '{';
    depth -= character == '}';
    if (character != ';' || depth > 0) {
      if (character != ' ' || (!one.empty() && one.back() != ' ')) one += character;
    } else {
      found.push_back(std::exchange(one, {}));
    }
  }
  return found;
}

std::filesystem::path list_file(int version) {
  return kRepository / "tests" / "capi" / "abi" / (std::to_string(version) + ".txt");
}

TEST(CExports, ChangeOnlyWithTheVersion) {
  std::vector<std::string> now = exported_symbols();
  for (const std::string& declaration : declarations()) now.push_back(declaration);
  std::string listing;
  for (const std::string& line : now) listing += line + '\n';
  ASSERT_EQ(read_file(list_file(VERBATIM_C_VERSION)), listing)
      << "The interface for C is no longer version " << VERBATIM_C_VERSION
      << ". Count VERBATIM_C_VERSION up, give new "
      << "functions a node of their own in src/capi/libverbatim.map, and put this listing into "
      << list_file(VERBATIM_C_VERSION + 1) << ". The files of versions that were released never change.";
}

TEST(CExports, KeepEverySymbolOfEarlierVersions) {
  const std::vector<std::string> now = exported_symbols();
  for (int version = 1; version < VERBATIM_C_VERSION; ++version) {
    for (const std::string& line : lines_of(read_file(list_file(version)))) {
      if (line.rfind("symbol ", 0) != 0) continue;
      EXPECT_THAT(now, ::testing::Contains(line)) << "of version " << version;
    }
  }
}

TEST(CExports, AreTheFunctionsOfTheHeaderAndNothingElse) {
  std::set<std::string> declared;
  static const std::regex function(R"(\b(verbatim_[a-z_]+)\()");
  for (const std::string& declaration : declarations()) {
    std::smatch match;
    if (declaration.rfind("typedef", 0) != 0 && std::regex_search(declaration, match, function))
      declared.insert(match[1]);
  }
  std::set<std::string> exported;
  for (const std::string& symbol : exported_symbols()) {
    const std::string name = symbol.substr(7);
    EXPECT_NE(name.find("@VERBATIM_"), std::string::npos) << name;
    exported.insert(name.substr(0, name.find('@')));
  }
  EXPECT_EQ(exported, declared);
}

}  // namespace
}  // namespace verbatim::test
