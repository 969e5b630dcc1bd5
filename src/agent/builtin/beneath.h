#pragma once

#include <string>
#include <utility>

namespace verbatim::agent {

/// A file descriptor that is closed at the end of its life; -1: none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int number() const { return number_; }

 private:
  int number_;
};

/// Opens what a path names below the open folder `root`, for reading. Links are followed as long as they stay
/// below it; the kernel checks this while it walks, so that no change meanwhile leads outside. Where the
/// kernel cannot, open_by_steps() is used. Throws Error(kBadInput).
FileDescriptor open_beneath(int root, const std::string& path);
/// The same for kernels before 5.6, folder by folder, through no link at all.
FileDescriptor open_by_steps(int root, const std::string& path);
/// The text of a file below the open folder. Throws Error(kBadInput) for anything else than a file, and for
/// one of more than 1 MiB.
std::string read_beneath(int root, const std::string& path);

}  // namespace verbatim::agent
