#include "base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "verbatim/text.h"

namespace verbatim {

namespace fs = std::filesystem;

namespace {

std::string cause_of(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void refuse(const fs::path& path, int error) {
  if (error == EMFILE || error == ENFILE || error == ENOMEM) {
    fail(ErrorKind::kMachine, "cannot open {}: {}; end other programs or raise the limit", path.string(),
         cause_of(error));
  }
  bad_input("cannot open {}: {}", path.string(), cause_of(error));
}

void check_type(const fs::path& path, const struct stat& status, Readable readable) {
  if (S_ISREG(status.st_mode)) return;
  if (S_ISDIR(status.st_mode)) bad_input("{} is a folder: name a file", path.string());
  if (readable == Readable::kPipeToo && S_ISFIFO(status.st_mode)) return;
  bad_input("{} is not a regular file", path.string());
}

}  // namespace

int open_input(const fs::path& path, Readable readable) {
  struct stat status {};
  // Before opening, because opening some devices already does something.
  if (stat(path.c_str(), &status) != 0) refuse(path, errno);
  check_type(path, status, readable);
  // Another thing may have taken the name since: without waiting it is opened, and looked at again.
  const int waiting = S_ISREG(status.st_mode) ? O_NONBLOCK : 0;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | waiting);
  if (file < 0) refuse(path, errno);
  try {
    if (fstat(file, &status) != 0) refuse(path, errno);
    check_type(path, status, readable);
  } catch (...) {
    close(file);
    throw;
  }
  return file;
}

std::string read_descriptor(int descriptor, size_t most, const std::string& where) {
  constexpr size_t kBlock = size_t{1} << 16;
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + kBlock);
    const ssize_t count = read(descriptor, text.data() + before, kBlock);
    const int error = errno;
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return text;
    if (count < 0 && error != EINTR) bad_input("cannot read {}: {}", where, cause_of(error));
    if (text.size() > most) bad_input("{} is too long: at most {} bytes are read", where, most);
  }
}

std::string read_input(const fs::path& path, size_t most, Readable readable) {
  const int file = open_input(path, readable);
  try {
    std::string text = read_descriptor(file, most, path.string());
    close(file);
    return text;
  } catch (...) {
    close(file);
    throw;
  }
}

std::string read_text(const fs::path& path, size_t most) {
  return read_input(path, most, Readable::kPipeToo);
}

std::string read_standard_input(size_t most) {
  return read_descriptor(STDIN_FILENO, most, "standard input");
}

}  // namespace verbatim
