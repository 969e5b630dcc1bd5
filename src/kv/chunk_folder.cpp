#include "kv/chunk_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/error.h"

namespace verbatim {

namespace {

constexpr std::string_view kEnding = ".chunk";
constexpr std::string_view kTemporary = ".chunk-partial-";
constexpr size_t kDigits = 2 * sizeof(Digest);
/// Of the most bytes, the part by which more is deleted than must be, so that the next file has room.
constexpr int64_t kSlack = 16;

std::string name_of(const Digest& key) {
  return hexadecimal(key).append(kEnding);
}

bool is_digits(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_entry(std::string_view name) {
  return name.size() == kDigits + kEnding.size() && name.ends_with(kEnding) &&
         is_digits(name.substr(0, kDigits));
}

bool is_temporary(std::string_view name) {
  return name.starts_with(kTemporary) && is_digits(name.substr(kTemporary.size()).substr(0, 1));
}

/// A descriptor that is closed at the end of its scope.
struct Descriptor {
  explicit Descriptor(int number_) : number(number_) {}
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number;
};

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

bool read_all(int file, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::read(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// The access and the modification time of a file that was last used at `time`.
std::array<timespec, 2> file_times(int64_t time) {
  const timespec both{.tv_sec = static_cast<time_t>(time / 1'000'000'000), .tv_nsec = time % 1'000'000'000};
  return {both, both};
}

ChunkFolder::Outcome failure_or_absent() {
  return errno == ENOENT ? ChunkFolder::Outcome::kAbsent : ChunkFolder::Outcome::kFailed;
}

/// Deletes a file or an empty folder. That it is gone already is no failure.
bool remove_at(int folder, const char* name) {
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return true;
  return unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

}  // namespace

ChunkFolder::ChunkFolder(const std::filesystem::path& given, int64_t most) : most_(most) {
  // With a slash behind its name a folder would be its own parent, and be made without its permissions.
  const std::filesystem::path path = given.has_filename() ? given : given.parent_path();
  std::error_code failure;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failure);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    bad_input("cannot make the folder {} to keep keys and values in: {}", path.string(),
              std::generic_category().message(errno));
  }
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) {
    bad_input("cannot open the folder {} to keep keys and values in: {}", path.string(),
              std::generic_category().message(errno));
  }
}

ChunkFolder::~ChunkFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

ChunkFolder::Outcome ChunkFolder::find(const Digest& key, std::span<std::byte> bytes) const {
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const Descriptor file(openat(descriptor_, name_of(key).c_str(), flags));
  if (file.number < 0) {
    // A link, a socket, or a device.
    return errno == ELOOP || errno == ENXIO || errno == ENODEV ? Outcome::kUnfit : failure_or_absent();
  }
  struct stat status {};
  if (fstat(file.number, &status) != 0) return Outcome::kFailed;
  if (!S_ISREG(status.st_mode) || status.st_size != static_cast<off_t>(bytes.size())) return Outcome::kUnfit;
  return read_all(file.number, bytes) ? Outcome::kDone : Outcome::kFailed;
}

ChunkFolder::Outcome ChunkFolder::remove(const Digest& key) const {
  return remove_at(descriptor_, name_of(key).c_str()) ? Outcome::kDone : Outcome::kFailed;
}

ChunkFolder::Outcome ChunkFolder::use(const Digest& key, int64_t time) const {
  const auto times = file_times(time);
  const bool done = utimensat(descriptor_, name_of(key).c_str(), times.data(), AT_SYMLINK_NOFOLLOW) == 0;
  return done ? Outcome::kDone : failure_or_absent();
}

/// Opens a new file that is locked, which says that somebody is writing it: see remove_abandoned(). Between
/// the making and the locking of a file another program may take it for abandoned; then it makes another one.
/// Returns -1 if the system refuses.
int ChunkFolder::open_temporary(std::string& name) const {
  static std::atomic<uint64_t> number{0};
  constexpr int kMostAttempts = 16;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    name = fmt::format("{}{}-{}", kTemporary, getpid(), ++number);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int file = openat(descriptor_, name.c_str(), flags, 0600);
    if (file < 0) return -1;
    const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    const bool taken = !locked && errno == EWOULDBLOCK;
    struct stat status {};
    if (locked && fstat(file, &status) == 0 && status.st_nlink > 0) return file;
    close(file);
    remove_at(descriptor_, name.c_str());
    if (!locked && !taken) return -1;
  }
  return -1;
}

ChunkFolder::Outcome ChunkFolder::write(const Digest& key, std::span<const std::byte> first,
                                        std::span<const std::byte> second, int64_t time) {
  const auto bytes = static_cast<int64_t>(first.size() + second.size());
  if (bytes > most_) return Outcome::kUnfit;
  // Others may write, too, so the folder is looked at now and then even if there seems to be room.
  if (bytes_ > most_ - bytes || unlisted_ > most_ / kSlack) {
    if (shrink(most_ - bytes) == Outcome::kFailed) return Outcome::kFailed;
  }
  std::string temporary;
  const Descriptor file(open_temporary(temporary));
  if (file.number < 0) return Outcome::kFailed;
  const auto times = file_times(time);
  const bool done = write_all(file.number, first) && write_all(file.number, second) &&
                    futimens(file.number, times.data()) == 0 &&
                    renameat(descriptor_, temporary.c_str(), descriptor_, name_of(key).c_str()) == 0;
  if (!done) {
    remove_at(descriptor_, temporary.c_str());
    return Outcome::kFailed;
  }
  bytes_ += bytes;
  unlisted_ += bytes;
  return Outcome::kDone;
}

ChunkFolder::Outcome ChunkFolder::clean() {
  return shrink(most_);
}

/// Deletes a temporary file unless somebody has it locked, who then is still writing it.
void ChunkFolder::remove_abandoned(const char* name) const {
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const Descriptor file(openat(descriptor_, name, flags));
  struct stat status {};
  if (file.number < 0 || fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (flock(file.number, LOCK_EX | LOCK_NB) == 0) unlinkat(descriptor_, name, 0);
}

/// Lists the files that are named after keys, and deletes abandoned temporary ones.
ChunkFolder::Outcome ChunkFolder::list(std::vector<Entry>& entries) const {
  const int again = openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return Outcome::kFailed;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(again), closedir);
  if (folder == nullptr) {
    close(again);
    return Outcome::kFailed;
  }
  while (const dirent* const found = readdir(folder.get())) {
    if (is_temporary(found->d_name)) remove_abandoned(found->d_name);
    struct stat status {};
    if (!is_entry(found->d_name)) continue;
    if (fstatat(descriptor_, found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
    entries.push_back(
        {found->d_name, S_ISREG(status.st_mode) ? int64_t{status.st_size} : 0, nanoseconds(status.st_mtim)});
  }
  return Outcome::kDone;
}

/// Deletes the least recently used files if all of them take more than `most` bytes.
ChunkFolder::Outcome ChunkFolder::shrink(int64_t most) {
  std::vector<Entry> entries;
  if (list(entries) == Outcome::kFailed) return Outcome::kFailed;
  bytes_ = 0;
  unlisted_ = 0;
  for (const Entry& entry : entries) bytes_ += entry.bytes;
  if (bytes_ <= most) return Outcome::kDone;
  std::ranges::sort(entries, {}, &Entry::used);
  const int64_t wanted = std::max<int64_t>(most - most_ / kSlack, 0);
  for (const Entry& entry : entries) {
    if (bytes_ <= wanted) break;
    if (remove_at(descriptor_, entry.name.c_str())) bytes_ -= entry.bytes;
  }
  return bytes_ <= most ? Outcome::kDone : Outcome::kFailed;
}

}  // namespace verbatim
