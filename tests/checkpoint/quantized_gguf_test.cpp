#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

/// The CRC-32 of files and archives.
class Crc32 {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      state_ ^= static_cast<uint32_t>(byte);
      for (int bit = 0; bit < 8; ++bit) state_ = state_ >> 1 ^ ((state_ & 1) != 0 ? 0xedb88320u : 0u);
    }
  }
  std::string text() const { return fmt::format("{:08x}", ~state_); }

 private:
  uint32_t state_ = ~0u;
};

/// Values with nine digits, as the file of expected values has them.
void expect_values(std::span<const float> actual, const std::vector<float>& expected,
                   const std::string& where) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_FLOAT_EQ(actual[i], expected[i]) << where << " " << i;
}

TEST(PublicQuantizedGguf, TensorsOfEveryTypeAreThoseOfAnotherImplementationBitForBit) {
  NEEDS_PUBLIC_DATA();
  const std::filesystem::path folder = test::public_data() / "quantized";
  const auto expected = nlohmann::json::parse(test::read_file(folder / "expected.json"));
  for (const auto& [name, file] : expected["files"].items()) {
    const GgufFile gguf = open_gguf(folder / file["file"].get<std::string>());
    for (const auto& [tensor_name, type] : file["tensor_types"].items()) {
      EXPECT_EQ(dtype_name(gguf.tensors.at(tensor_name).dtype), type.get<std::string>()) << name;
    }
    for (const auto& [tensor_name, about] : file["tensors"].items()) {
      const std::string where = name + " " + tensor_name;
      const TensorView& tensor = gguf.tensors.at(tensor_name);
      EXPECT_EQ(tensor.shape, about["shape"].get<std::vector<int64_t>>());
      std::vector<float> row(static_cast<size_t>(tensor.columns()));
      Crc32 crc;
      for (int64_t r = 0; r < tensor.rows(); ++r) {
        tensor.read_row(r, row);
        crc.add(std::as_bytes(std::span(row)));
        if (r == 0) expect_values(std::span(row).first(16), about["first16"], where + " first");
      }
      expect_values(std::span(row).last(16), about["last16"], where + " last");
      EXPECT_EQ(crc.text(), about["crc32"].get<std::string>()) << where;
    }
  }
}

}  // namespace
}  // namespace verbatim
