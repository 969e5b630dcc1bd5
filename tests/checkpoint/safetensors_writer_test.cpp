#include "checkpoint/safetensors_writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "checkpoint/safetensors.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using test::bytes_of;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template <typename Work>
void expect_error(ErrorKind kind, const std::string& part, Work&& work) {
  try {
    work();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

const std::vector<TensorEntry> kTensors = {
    {"second", DType::kF32, {2, 3}}, {"first", DType::kBF16, {5}}, {"odd \" name\n", DType::kF16, {1, 1, 2}}};

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "model.safetensors";
  std::string data;
  for (int i = 0; i < 38; ++i) data += static_cast<char>(i * 7);
  SafetensorsWriter writer(path, kTensors);
  writer.write(as_bytes(data.substr(0, 1)));  // pieces need not end with a tensor
  writer.write(as_bytes(data.substr(1, 30)));
  writer.write(as_bytes(data.substr(31)));
  writer.finish();

  const SafetensorsModel model = open_safetensors(folder.path());
  ASSERT_EQ(model.tensors.size(), kTensors.size());
  std::string stored;
  for (const TensorEntry& entry : kTensors) {
    const TensorView& view = model.tensors.at(entry.name);
    EXPECT_EQ(view.dtype, entry.dtype) << entry.name;
    EXPECT_EQ(view.shape, entry.shape) << entry.name;
    stored.append(reinterpret_cast<const char*>(view.data.data()), view.data.size());
  }
  EXPECT_EQ(stored, data);
}

TEST(SafetensorsWriter, PutsTheDataAtAMultipleOf64) {
  std::vector<TensorEntry> tensors;
  for (int count = 0; count < 70; ++count) {
    const std::string header = safetensors_header(tensors);
    EXPECT_EQ(header.size() % 64, 0u);
    uint64_t length = 0;
    std::memcpy(&length, header.data(), sizeof(length));
    EXPECT_EQ(length + sizeof(length), header.size());
    tensors.push_back({std::string(static_cast<size_t>(count) + 1, 'x'), DType::kF16, {0}});
  }
}

TEST(SafetensorsWriter, WantsAllBytesAndNoMore) {
  const test::TemporaryFolder folder;
  const std::vector<TensorEntry> tensors = {{"x", DType::kF32, {2}}};
  SafetensorsWriter writer(folder.path() / "a", tensors);
  writer.write(as_bytes(bytes_of(1.0f)));
  expect_error(ErrorKind::kUsage, "4 bytes", [&] { writer.finish(); });
  expect_error(ErrorKind::kUsage, "more bytes", [&] { writer.write(as_bytes("too much")); });
}

TEST(SafetensorsWriter, RefusesWhatTheFormatCannotHold) {
  const std::vector<TensorEntry> blocks = {{"x", DType::kQ8_0, {32}}};
  expect_error(ErrorKind::kUsage, "Q8_0", [&] { safetensors_header(blocks); });
  const std::vector<TensorEntry> negative = {{"x", DType::kF32, {-1}}};
  expect_error(ErrorKind::kUsage, "[-1]", [&] { safetensors_header(negative); });
}

TEST(SafetensorsWriter, SaysWhereItCannotWrite) {
  const test::TemporaryFolder folder;
  const auto taken = folder.write("taken", "something");
  expect_error(ErrorKind::kMachine, "taken", [&] { SafetensorsWriter(taken, kTensors); });
  EXPECT_EQ(test::read_file(taken), "something");
  expect_error(ErrorKind::kMachine, "absent",
               [&] { SafetensorsWriter(folder.path() / "absent" / "file", kTensors); });
}

}  // namespace
}  // namespace verbatim
