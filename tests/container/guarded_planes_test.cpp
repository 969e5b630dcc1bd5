// A mapped file ends where its last page ends, so no kernel may read a byte beyond a plane. Here every plane
// ends at a page that cannot be read.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>

#include "base/float16.h"
#include "formats/pack_linear.h"
#include "support/machine_paths.h"
#include "support/random.h"
#include "support/use_container.h"

namespace verbatim {
namespace {

constexpr size_t kPage = 4096;

/// Bytes that begin at a multiple of `alignment` and end, up to that, at an unreadable page.
class GuardedBytes {
 public:
  GuardedBytes(std::span<const std::byte> bytes, size_t alignment) {
    room_ = round_up(bytes.size() + alignment, kPage);
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, room_ + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + room_, kPage, PROT_NONE);
    std::byte* const begin = memory_ + (room_ - bytes.size()) / alignment * alignment;
    if (!bytes.empty()) std::memcpy(begin, bytes.data(), bytes.size());
    span_ = {begin, bytes.size()};
  }
  ~GuardedBytes() { munmap(memory_, room_ + kPage); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  std::span<const std::byte> span() const { return span_; }

 private:
  std::byte* memory_;
  size_t room_;
  std::span<const std::byte> span_;
};

class GuardedPlanes : public testing::TestWithParam<std::tuple<test::MachinePath, Format>> {
 protected:
  test::SelectedKernels selected_{*std::get<0>(GetParam()).table};
};

void expect_same_products(const LinearWeight& weight, const LinearWeight& guarded, Reading reading,
                          int64_t rows, ThreadTeam& team) {
  std::vector<float> x = test::random_floats(static_cast<size_t>(rows * weight.padded_k()), 3);
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(x.begin() + r * weight.padded_k() + weight.k, x.begin() + (r + 1) * weight.padded_k(), 0.0f);
  }
  std::vector<float> expected(static_cast<size_t>(rows * weight.padded_columns()));
  std::vector<float> actual(expected.size());
  const Matrix<const float> input(x.data(), rows, weight.padded_k());
  LinearWorkspace workspace;
  linear(weight, reading, input, Matrix<float>(expected.data(), rows, weight.padded_columns()), workspace,
         team);
  linear(guarded, reading, input, Matrix<float>(actual.data(), rows, weight.padded_columns()), workspace,
         team);
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), expected.size() * sizeof(float)), 0)
      << reading_name(reading);
}

TEST_P(GuardedPlanes, AreNotReadBeyondTheirEnd) {
  const Format format = std::get<1>(GetParam());
  ThreadTeam team(2);
  constexpr int64_t kShapes[][2] = {{16, 32}, {7, 20}, {40, 96}, {80, 300}, {150, 544}};
  for (const auto& [columns, k] : kShapes) {
    const MatrixRows rows = [columns = columns](int64_t column, std::span<float> row) {
      std::vector<float> values =
          test::random_floats(row.size(), static_cast<uint32_t>(column + columns), 0.05f);
      for (size_t i = 0; i < row.size(); ++i) {
        if (i % 29 == 3) values[i] *= 1e-9f;  // escaped by the lossless formats
        if (i % 97 == 5) values[i] *= 30.0f;  // an outlier
        row[i] = to_float(to_bfloat16(values[i]));
      }
    };
    const LinearWeight weight = pack_linear(columns, k, rows, {.formats = {format}}, team).weight;
    LinearWeight guarded;
    guarded.columns = weight.columns;
    guarded.k = weight.k;
    const PackedMatrix& store = weight.stores.front();
    PackedMatrix& mapped = guarded.stores.emplace_back();
    mapped.format = store.format;
    mapped.element = store.element;
    mapped.columns = store.columns;
    mapped.k = store.k;
    std::vector<std::unique_ptr<GuardedBytes>> memory;
    for (const Plane& plane : store.planes) {
      const size_t alignment = plane.size() % 64 == 0 ? 64 : plane.size() % 8 == 0 ? 8 : plane.size() % 2 + 1;
      // Whatever its size, a plane of words lies at a multiple of a word.
      const size_t least = plane.size() % 2 == 1 ? 1 : std::max<size_t>(alignment, 2);
      memory.push_back(std::make_unique<GuardedBytes>(plane.bytes(), least));
      mapped.planes.emplace_back(memory.back()->span());
    }
    operations(format).validate(mapped);
    for (const Reading reading : readings(format)) {
      for (const int64_t count : {1, 2, 5, 17, 40, 100})
        expect_same_products(weight, guarded, reading, count, team);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GuardedPlanes,
                         testing::Combine(testing::ValuesIn(test::machine_paths()),
                                          testing::ValuesIn(all_formats())),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param).name + "_";
                           for (const char c : format_name(std::get<1>(info.param)))
                             name += c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace verbatim
