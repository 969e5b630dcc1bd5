#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const fs::path kRepository = VERBATIM_SOURCE_DIR;

/// Rooms of src/ that see of the library what any user of it sees.
const std::vector<std::string> kWings = {"serve", "agent", "capi", "accelerator"};

/// Headers of the standard library of C, which the interface for C may include.
const std::set<std::string> kHeadersOfC = {"stddef.h", "stdint.h"};

/// One include directive.
struct Include {
  std::string file;  ///< that holds it, relative to the root of the tree
  std::string name;  ///< between the quotation marks or the brackets
  bool quoted = false;
};

std::vector<Include> includes_below(const fs::path& root, const std::string& folder) {
  static const std::regex pattern(R"(^\s*#\s*include\s*(["<])([^">]+)[">])");
  std::vector<fs::path> files;
  if (!fs::exists(root / folder)) return {};
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const fs::path ending = entry.path().extension();
    if (ending == ".h" || ending == ".cpp") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Include> found;
  for (const fs::path& file : files) {
    std::istringstream lines(test::read_file(file));
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (std::regex_search(line, match, pattern)) {
        found.push_back({.file = fs::relative(file, root), .name = match[2], .quoted = match[1] == "\""});
      }
    }
  }
  return found;
}

/// The layers below src/ from the lowest to the highest: the table of docs/architecture.md is the one place
/// that says.
std::vector<std::string> layers_of(const fs::path& root) {
  static const std::regex row(R"(^\| `src/([a-z_]+)/` \|)");
  std::vector<std::string> layers;
  std::istringstream lines(test::read_file(root / "docs" / "architecture.md"));
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, row)) layers.push_back(match[1]);
  }
  return layers;
}

std::string first_folder(const std::string& path) {
  const size_t slash = path.find('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

/// Every include in a tree that its layers forbid, as "FILE includes HEADER: REASON".
std::vector<std::string> forbidden_includes(const fs::path& root) {
  std::vector<std::string> found;
  const auto forbid = [&](const Include& one, const std::string& reason) {
    found.push_back(one.file + " includes " + one.name + ": " + reason);
  };
  const std::vector<std::string> layers = layers_of(root);
  const auto height = [&](const std::string& layer) {
    return std::find(layers.begin(), layers.end(), layer);
  };

  for (const Include& one : includes_below(root, "src")) {
    if (!one.quoted) continue;
    const std::string here = first_folder(one.file.substr(4));
    const std::string there = first_folder(one.name);
    if (there == "verbatim") continue;
    if (std::find(kWings.begin(), kWings.end(), here) != kWings.end() && there != here) {
      forbid(one, "src/" + here + " includes itself and the public interface alone");
    } else if (height(here) == layers.end()) {
      forbid(one, "src/" + here + " is no layer of docs/architecture.md");
    } else if (height(there) == layers.end()) {
      forbid(one, "that is in no layer of docs/architecture.md");
    } else if (height(there) > height(here)) {
      forbid(one, "src/" + there + " comes after src/" + here + " in the table of docs/architecture.md");
    }
  }
  for (const Include& one : includes_below(root, "include")) {
    const bool of_c = one.file == "include/verbatim/verbatim_c.h" && kHeadersOfC.count(one.name) != 0;
    const bool standard = !one.quoted && (of_c || one.name.find_first_of("/.") == std::string::npos);
    if (!standard && !(one.quoted && first_folder(one.name) == "verbatim")) {
      forbid(one, "the public interface includes itself and the standard library alone");
    }
  }
  for (const auto& [folder, name] : {std::pair{"app", "the program"}, {"python", "the Python package"}}) {
    for (const Include& one : includes_below(root, folder)) {
      if (!one.quoted || first_folder(one.name) == "verbatim") continue;
      if (fs::exists(root / fs::path(one.file).parent_path() / one.name)) continue;
      forbid(one, std::string(name) + " includes itself and the public interface alone");
    }
  }
  for (const char* const folder : {"src", "include", "app", "python", "examples"}) {
    for (const Include& one : includes_below(root, folder)) {
      if (first_folder(one.name) == "bench") forbid(one, "nothing includes the laboratory");
    }
  }
  return found;
}

/// A made-up tree of three layers, in which everything is as it should be.
class Layers : public ::testing::Test {
 protected:
  void SetUp() override {
    add("docs/architecture.md", "| `include/verbatim/` | x |\n| `src/low/` | x |\n| `src/high/` | x |\n");
    add("include/verbatim/all.h", "#include <vector>\n#include \"verbatim/error.h\"\n");
    add("src/low/a.cpp", "#include \"low/a.h\"\n#include \"verbatim/all.h\"\n#include <fmt/format.h>\n");
    add("src/high/b.cpp", "#include \"high/b.h\"\n#include \"low/a.h\"\n");
    add("app/main.cpp", "#include \"main.h\"\n#include \"verbatim/all.h\"\n");
    add("app/main.h", "");
    add("bench/all.cpp", "#include \"bench/all.h\"\n#include \"high/b.h\"\n#include \"app/main.h\"\n");
  }

  void add(const std::string& file, const std::string& text) {
    fs::create_directories((folder_.path() / file).parent_path());
    folder_.write(file, text);
  }

  std::vector<std::string> found() const { return forbidden_includes(folder_.path()); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(Layers, MayIncludeTheLayersBelowThem) {
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Layers, MayNotIncludeALayerAboveThem) {
  add("src/low/wrong.h", "#pragma once\n  #  include \"high/b.h\"\n");
  EXPECT_THAT(found(), ElementsAre("src/low/wrong.h includes high/b.h: src/high comes after src/low in the "
                                   "table of docs/architecture.md"));
}

TEST_F(Layers, AreAllInTheTable) {
  add("src/other/c.cpp", "#include \"low/a.h\"\n");
  add("src/high/wrong.cpp", "#include \"elsewhere/d.h\"\n");
  EXPECT_THAT(found(), ElementsAre(HasSubstr("src/high/wrong.cpp includes elsewhere/d.h"),
                                   HasSubstr("src/other/c.cpp includes low/a.h")));
}

TEST_F(Layers, KeepThePublicInterfaceToItself) {
  add("include/verbatim/private.h", "#include \"low/a.h\"\n");
  add("include/verbatim/third_party.h", "#include <fmt/format.h>\n");
  add("include/verbatim/system.h", "#include <unistd.h>\n");
  EXPECT_THAT(found(), ElementsAre(HasSubstr("includes low/a.h"), HasSubstr("includes unistd.h"),
                                   HasSubstr("includes fmt/format.h")));
}

TEST_F(Layers, LetTheInterfaceForCIncludeTheStandardLibraryOfC) {
  add("include/verbatim/verbatim_c.h", "#include <stddef.h>\n#include <stdint.h>\n#include <unistd.h>\n");
  add("include/verbatim/other.h", "#include <stdint.h>\n");
  EXPECT_THAT(found(), ElementsAre(HasSubstr("other.h includes stdint.h"),
                                   HasSubstr("verbatim_c.h includes unistd.h")));
}

TEST_F(Layers, KeepTheInterfaceForCToThePublicInterface) {
  add("docs/architecture.md", "| `src/low/` | x |\n| `src/high/` | x |\n| `src/capi/` | x |\n");
  add("src/capi/right.cpp", "#include \"capi/right.h\"\n#include \"verbatim/all.h\"\n");
  add("src/capi/wrong.cpp", "#include \"low/a.h\"\n");
  EXPECT_THAT(found(),
              ElementsAre("src/capi/wrong.cpp includes low/a.h: src/capi includes itself and the public "
                          "interface alone"));
}

TEST_F(Layers, KeepTheProgramToThePublicInterface) {
  add("app/wrong.cpp", "#include \"main.h\"\n#include \"high/b.h\"\n#include \"low/a.h\"\n");
  EXPECT_THAT(found(), ElementsAre(HasSubstr("app/wrong.cpp includes high/b.h"),
                                   HasSubstr("app/wrong.cpp includes low/a.h")));
}

TEST_F(Layers, KeepThePythonPackageToThePublicInterface) {
  add("python/native/right.cpp", "#include \"verbatim/all.h\"\n#include <pybind11/pybind11.h>\n");
  add("python/native/wrong.cpp", "#include \"low/a.h\"\n");
  EXPECT_THAT(found(), ElementsAre("python/native/wrong.cpp includes low/a.h: the Python package includes "
                                   "itself and the public interface alone"));
}

TEST_F(Layers, KeepTheServerToThePublicInterface) {
  add("docs/architecture.md", "| `src/low/` | x |\n| `src/high/` | x |\n| `src/serve/` | x |\n");
  add("src/serve/right.cpp",
      "#include \"serve/right.h\"\n#include \"verbatim/all.h\"\n#include <fmt/format.h>\n");
  add("src/serve/inner/wrong.cpp", "#include \"low/a.h\"\n#include \"serve/right.h\"\n");
  EXPECT_THAT(found(),
              ElementsAre("src/serve/inner/wrong.cpp includes low/a.h: src/serve includes itself and the "
                          "public interface alone"));
}

TEST_F(Layers, DoNotKnowTheLaboratory) {
  add("src/high/wrong.cpp", "#include <bench/all.h>\n");
  add("app/wrong.cpp", "#include <bench/all.h>\n");
  EXPECT_THAT(found(), ElementsAre(HasSubstr("src/high/wrong.cpp includes bench/all.h"),
                                   HasSubstr("app/wrong.cpp includes bench/all.h")));
}

TEST(LayersOfTheRepository, AreAllThere) {
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(kRepository / "src")) {
    if (entry.is_directory()) folders.insert(entry.path().filename());
  }
  const std::vector<std::string> layers = layers_of(kRepository);
  EXPECT_EQ(std::set<std::string>(layers.begin(), layers.end()), folders);
}

TEST(LayersOfTheRepository, AreKept) {
  EXPECT_THAT(forbidden_includes(kRepository), IsEmpty());
}

}  // namespace
}  // namespace verbatim
