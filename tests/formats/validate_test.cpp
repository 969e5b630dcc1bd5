#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "formats/escaped_weights.h"
#include "formats/squeeze.h"
#include "support/packed.h"
#include "support/random.h"
#include "verbatim/error.h"

namespace verbatim {
namespace validate_test {
namespace {

// A mapped file can hold anything. What validate() lets pass, no kernel reads or writes beyond.

constexpr int64_t kColumns = 40;
constexpr int64_t kInputs = 300;

struct Store {
  Format format;
  Element element = Element::kBf16;
};

std::vector<Store> stores() {
  std::vector<Store> list;
  for (const Format format : all_formats()) list.push_back({format});
  list.push_back({Format::kBsfp, Element::kF16});
  return list;
}

/// Weights with zeros and tiny ones, so that some are escaped, and halves of tiles without any weight.
PackedMatrix good(const Store& store) {
  std::vector<float> weights = test::random_floats(kColumns * kInputs, 1, 0.05f);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (i % 7 == 2) weights[i] *= 1e-6f;
    if (i % 11 == 3) weights[i] = 0.0f;
    if (i % static_cast<size_t>(kInputs) / 16 == 4) weights[i] = 0.0f;
    // Outliers, which take the window of exponents away from its usual place.
    if (i % 97 == 0) weights[i] = 2.5f + static_cast<float>(i) * 1e-5f;
  }
  return test::pack_store(kColumns, kInputs, weights, store.format, store.element);
}

void expect_refused(const PackedMatrix& matrix, const std::string& what) {
  SCOPED_TRACE(std::string(format_name(matrix.format)) + ": " + what);
  try {
    operations(matrix.format).validate(matrix);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput) << error.what();
    EXPECT_NE(std::string(error.what()).find(format_name(matrix.format)), std::string::npos) << error.what();
  }
}

/// The plane with another length: cut, or filled up with zeros.
void resize(PackedMatrix& matrix, size_t plane, size_t bytes) {
  Plane changed(bytes);
  const std::span<const std::byte> old = matrix.planes[plane].bytes();
  std::copy_n(old.begin(), std::min(bytes, old.size()), changed.as<std::byte>());
  matrix.planes[plane] = std::move(changed);
}

TEST(Validate, AcceptsWhatPackingMakesOwnedAndMapped) {
  for (const Store& store : stores()) {
    const PackedMatrix matrix = good(store);
    EXPECT_NO_THROW(operations(store.format).validate(matrix)) << format_name(store.format);
    EXPECT_NO_THROW(operations(store.format).validate(test::copy_of(matrix)));
    PackedMatrix borrowed = make_matrix(store.format, kColumns, kInputs);
    borrowed.element = store.element;
    for (const Plane& plane : matrix.planes) borrowed.planes.emplace_back(plane.bytes());
    EXPECT_NO_THROW(operations(store.format).validate(borrowed));
  }
}

TEST(Validate, RefusesPlanesOfWrongSizes) {
  for (const Store& store : stores()) {
    const PackedMatrix matrix = good(store);
    for (size_t plane = 0; plane < matrix.planes.size(); ++plane) {
      const size_t size = matrix.planes[plane].size();
      for (const size_t wrong : {size_t{0}, size / 2, size - 1, size + 1, size + 2, size + 64, 2 * size}) {
        if (wrong == size || size == 0) continue;
        PackedMatrix changed = test::copy_of(matrix);
        resize(changed, plane, wrong);
        expect_refused(changed, fmt::format("plane {} of {} bytes, not {}", plane, wrong, size));
      }
    }
  }
}

TEST(Validate, RefusesMissingPlanes) {
  for (const Store& store : stores()) {
    PackedMatrix changed = test::copy_of(good(store));
    while (!changed.planes.empty()) {
      changed.planes.pop_back();
      expect_refused(changed, fmt::format("{} planes", changed.planes.size()));
    }
  }
}

TEST(Validate, RefusesPlanesOfAMatrixOfAnotherSize) {
  for (const Store& store : stores()) {
    PackedMatrix changed = test::copy_of(good(store));
    changed.columns += kPanelWidth;
    expect_refused(changed, "a panel more");
    changed.columns -= 2 * kPanelWidth;
    expect_refused(changed, "a panel less");
  }
}

/// The first plane of the escaped weights.
int first_escaped(Format format) {
  return format == Format::kBsfp ? 4 : 3;
}

void expect_escaped_refused(const Store& store, const std::string& what,
                            const std::function<void(uint8_t* counts, uint64_t* starts)>& change) {
  PackedMatrix changed = test::copy_of(good(store));
  const int first = first_escaped(store.format);
  change(changed.plane(first).as<uint8_t>(), changed.plane(first + 1).as<uint64_t>());
  expect_refused(changed, what);
}

TEST(Validate, RefusesEscapedWeightsThatDoNotAgree) {
  for (const Store& store :
       {Store{Format::kBsfp}, Store{Format::kBsfp, Element::kF16}, Store{Format::kMxbf16}}) {
    const PackedMatrix matrix = good(store);
    const int first = first_escaped(store.format);
    const uint8_t* const counts = matrix.plane(first).as<uint8_t>();
    const int64_t halves = matrix.panels() * matrix.tiles() * 2;
    ASSERT_TRUE(std::any_of(counts, counts + halves, [](uint8_t c) { return c == kZeroHalf; }));
    const auto some =
        std::find_if(counts, counts + halves, [](uint8_t c) { return c > 0 && c != kZeroHalf; });
    ASSERT_NE(some, counts + halves);
    const int64_t half = some - counts;
    expect_escaped_refused(store, "one more", [&](uint8_t* c, uint64_t*) { ++c[half]; });
    expect_escaped_refused(store, "one less", [&](uint8_t* c, uint64_t*) { --c[half]; });
    expect_escaped_refused(store, "zeros with entries", [&](uint8_t* c, uint64_t*) { c[half] = kZeroHalf; });
    expect_escaped_refused(store, "one more in the last half", [&](uint8_t* c, uint64_t*) {
      c[halves - 1] = static_cast<uint8_t>(c[halves - 1] == kZeroHalf ? 1 : c[halves - 1] + 1);
    });
    expect_escaped_refused(store, "all where some are listed",
                           [&](uint8_t* c, uint64_t*) { c[half] = kFullHalf; });
    for (int64_t panel = 0; panel <= matrix.panels(); ++panel) {
      expect_escaped_refused(store, "a start too high", [&](uint8_t*, uint64_t* s) { ++s[panel]; });
      expect_escaped_refused(store, "a start too low", [&](uint8_t*, uint64_t* s) { --s[panel]; });
      expect_escaped_refused(store, "a start far away",
                             [&](uint8_t*, uint64_t* s) { s[panel] = UINT64_MAX / 2 + 1; });
    }
  }
}

TEST(Validate, RefusesASparsePartThatLeadsOutside) {
  for (const Format format : {Format::kSqueeze3, Format::kSqueeze4}) {
    const auto expect = [&](const std::string& what, const std::function<void(PackedMatrix&)>& change) {
      PackedMatrix changed = test::copy_of(good({format}));
      change(changed);
      expect_refused(changed, what);
    };
    const PackedMatrix matrix = good({format});
    const uint32_t entries = matrix.plane(2).as<uint32_t>()[matrix.columns];
    ASSERT_GT(entries, 1u);
    for (const uint32_t at : {0u, entries / 2, entries - 1}) {
      for (const int64_t input : {matrix.k, matrix.k + 1, int64_t{65535}}) {
        expect("an input beyond the last",
               [&](PackedMatrix& m) { m.plane(3).as<uint16_t>()[at] = static_cast<uint16_t>(input); });
      }
    }
    expect("a first start above 0", [](PackedMatrix& m) { m.plane(2).as<uint32_t>()[0] = 1; });
    expect("a last start too high", [](PackedMatrix& m) { ++m.plane(2).as<uint32_t>()[m.columns]; });
    expect("a last start too low", [](PackedMatrix& m) { --m.plane(2).as<uint32_t>()[m.columns]; });
    expect("starts out of order",
           [](PackedMatrix& m) { m.plane(2).as<uint32_t>()[5] = m.plane(2).as<uint32_t>()[m.columns] + 7; });
    expect("a start far away", [](PackedMatrix& m) { m.plane(2).as<uint32_t>()[5] = 0xffffffff; });
    expect("all starts far away",
           [](PackedMatrix& m) { std::fill_n(m.plane(2).as<uint32_t>() + 1, m.columns, 0xffffffff); });
  }
}

}  // namespace
}  // namespace validate_test
}  // namespace verbatim
