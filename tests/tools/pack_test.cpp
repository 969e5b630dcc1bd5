#include "verbatim/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/bad_input.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/inspect.h"
#include "verbatim/model.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PackModel, WritesAFileThatLoadsAsTheModel) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "draft.vbt";
  double done = 0;
  const auto packed =
      pack_model(test::draft_model(), file,
                 {.formats = {"full", "mxfp4"}, .threads = 2, .progress = [&](double now) { done = now; }});
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->bytes, static_cast<int64_t>(fs::file_size(file)));
  EXPECT_THAT(packed->formats, ElementsAre("bf16", "mxfp4"));
  EXPECT_THAT(packed->warnings, IsEmpty());
  EXPECT_EQ(done, 1.0);
  const std::string text = "Once upon a time";
  EXPECT_EQ(Model::load(file).encode(text), Model::load(test::draft_model()).encode(text));
}

TEST(PackModel, ReportsTheWarningsAboutAModel) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", {.nan_weight = true});
  const auto packed =
      pack_model(folder.path() / "model", folder.path() / "x.vbt", {.formats = {"full"}, .threads = 2});
  ASSERT_TRUE(packed);
  EXPECT_THAT(packed->warnings, ElementsAre(HasSubstr("down_proj")));
}

TEST(PackModel, KeepsApartTheSharesOfWeightsThatItIsTold) {
  const test::TemporaryFolder folder;
  const auto bytes = [&](double sensitive, double outliers) {
    const fs::path file = folder.path() / "x.vbt";
    fs::remove(file);
    return pack_model(test::draft_model(), file,
                      {.formats = {"squeeze3"}, .sparse_sensitive = sensitive, .sparse_outliers = outliers})
        ->bytes;
  };
  const int64_t dense = bytes(0.0, 0.0);
  EXPECT_GT(bytes(0.0, 0.01), dense);
  EXPECT_GT(bytes(0.01, 0.02), bytes(0.0, 0.01));
  for (const double none : {-0.1, 1.5, std::nan("")}) {
    try {
      bytes(none, 0.0);
      FAIL() << none;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(error.what(), HasSubstr("sparse part"));
    }
  }
  EXPECT_TRUE(fs::is_empty(folder.path())) << "a failure leaves no file behind";
}

TEST(PackModel, KeepsAShareOfTheWholeModelApart) {
  const test::TemporaryFolder folder;
  const auto packed = [&](const char* name, bool across, int32_t threads) {
    const fs::path file = folder.path() / name;
    EXPECT_TRUE(pack_model(test::draft_model(), file,
                           {.formats = {"squeeze3"},
                            .sparse_outliers = 0.02,
                            .outliers_across_model = across,
                            .threads = threads}));
    return file;
  };
  const auto shares = [](const fs::path& file) {
    std::vector<double> shares;
    const ModelReport report = inspect_model(file);
    for (const SparsePartReport& part : report.packed->sparse) {
      shares.push_back(static_cast<double>(part.entries) / static_cast<double>(part.weights));
    }
    return shares;
  };
  const fs::path model = packed("model.vbt", true, 2);
  EXPECT_EQ(test::read_file(model), test::read_file(packed("one.vbt", true, 1)));
  const std::vector<double> across = shares(model);
  const std::vector<double> each = shares(packed("each.vbt", false, 2));
  const auto spread = [](const std::vector<double>& of) {
    return *std::max_element(of.begin(), of.end()) - *std::min_element(of.begin(), of.end());
  };
  EXPECT_GT(spread(across), 2 * spread(each)) << "matrices with longer tails keep more";
}

TEST(PackModel, RefusesSharesOfASparsePartWhereNoFormatHasOne) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "x.vbt";
  for (const PackOptions& options :
       {PackOptions{.formats = {"int4"}, .sparse_sensitive = 0.01}, PackOptions{.sparse_outliers = 0.01},
        PackOptions{.outliers_across_model = true}, PackOptions{.sensitivities = folder.path() / "f"}}) {
    try {
      pack_model(test::draft_model(), file, options);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(error.what(), HasSubstr("squeeze3 and squeeze4"));
    }
  }
}

TEST(PackModel, LeavesNoFileBehindWhenItIsCancelledOrFails) {
  const test::TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  const fs::path file = folder.path() / "x.vbt";
  test::write_tiny_llama(model);
  EXPECT_EQ(pack_model(model, file, {.threads = 2, .cancelled = [] { return true; }}), std::nullopt);
  expect_bad_input([&] { pack_model(model, file, {.formats = {"int3"}}); }, {"int3"});
  EXPECT_THROW(pack_model(model, file, {.formats = {"int4", "full", "int4"}}), Error);
  expect_bad_input([&] { pack_model(folder.path() / "absent", file); }, {"absent"});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace verbatim
