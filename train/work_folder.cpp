#include "work_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <system_error>

#include "base/error.h"
#include "base/input_file.h"
#include "base/json_fields.h"
#include "base/output_file.h"

namespace verbatim::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kNote = "progress.json";
constexpr const char* kNextNote = "progress.next";
constexpr const char* kStreams = "streams";
constexpr const char* kEven = "gradients-0";
constexpr const char* kOdd = "gradients-1";
constexpr const char* kSensitivities = "sensitivities";

fs::path folder_of(const fs::path& file) {
  return file.string() + ".work";
}

/// Whether a file of this name is one that a run leaves in its folder.
bool is_ours(const fs::path& name) {
  for (const char* ours : {kNote, kNextNote, kStreams, kEven, kOdd, kSensitivities}) {
    if (name == ours) return true;
  }
  return false;
}

/// Throws Error(kBadInput) if anything but what an interrupted run leaves is where the folder should be.
void refuse_what_is_not_ours(const fs::path& folder) {
  std::error_code failure;
  const fs::file_status status = fs::symlink_status(folder, failure);
  if (status.type() == fs::file_type::not_found) return;
  if (status.type() != fs::file_type::directory)
    bad_input("{} is in the way and no folder: move it away", folder.string());
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
    if (is_ours(entry.path().filename()) && entry.symlink_status(failure).type() == fs::file_type::regular)
      continue;
    bad_input("{} holds {}, which no run has left there: move it away", folder.string(),
              entry.path().filename().string());
  }
}

/// Prepares the folder and returns its path.
fs::path prepared(const fs::path& file, bool resume) {
  const fs::path folder = folder_of(file);
  refuse_what_is_not_ours(folder);
  std::error_code failure;
  const bool noted = fs::exists(folder / kNote, failure);
  if (noted && !resume) {
    bad_input("{} holds the work of a run that was interrupted: add --resume to go on with it, or remove it",
              folder.string());
  }
  fs::create_directory(folder, failure);
  if (failure) bad_input("cannot make the folder {}: {}", folder.string(), failure.message());
  return folder;
}

/// Opens the folder and keeps other runs out of it until the descriptor is closed.
int locked(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  const std::error_code cause(errno, std::generic_category());
  if (descriptor >= 0) close(descriptor);
  if (cause == std::errc::resource_unavailable_try_again)
    bad_input("another run is at work in {}: wait for its end, or name another file", folder.string());
  fail(ErrorKind::kMachine, "cannot open the folder {}: {}", folder.string(), cause.message());
}

/// Reads how far the work in a folder has come, and checks that a run may have written it.
Progress read_progress(const fs::path& note, const std::string& identity, int32_t layers) {
  constexpr size_t kMost = 1 << 20;
  const nlohmann::json json = parse_json(read_input(note, kMost), 2, note.string());
  const JsonFields fields(json, note.string());
  if (fields.text("identity") != identity) {
    bad_input(
        "{} belongs to other work: another model or text, or other settings; name another file, or remove "
        "the "
        "folder to begin anew",
        note.parent_path().string());
  }
  Progress progress{.forward = fields.required_integer("forward"),
                    .backward = fields.required_integer("backward"),
                    .loss = 0.0};
  const auto loss = json.find("loss");
  if (loss != json.end() && loss->is_number()) progress.loss = loss->get<double>();
  const bool forward_done = progress.forward == layers;
  if (progress.forward < 0 || progress.forward > layers || progress.backward < 0 ||
      progress.backward > (forward_done ? layers + 1 : 0) || !std::isfinite(progress.loss) ||
      (progress.backward > 0 && progress.loss == 0.0)) {
    bad_input("{} is damaged: remove the folder to begin anew", note.string());
  }
  return progress;
}

}  // namespace

WorkFolder::Lock::Lock(const fs::path& folder) : descriptor_(locked(folder)) {}

WorkFolder::Lock::~Lock() {
  close(descriptor_);
}

WorkFolder::WorkFolder(const fs::path& file, const std::string& identity, int32_t layers, bool resume)
    : path_(prepared(file, resume)),
      lock_(path_),
      identity_(identity),
      streams_(path_ / kStreams),
      even_(path_ / kEven),
      odd_(path_ / kOdd),
      sensitivities_(path_ / kSensitivities) {
  const fs::path note = path_ / kNote;
  std::error_code ignored;
  if (fs::exists(note, ignored)) progress_ = read_progress(note, identity_, layers);
}

void WorkFolder::note(const Progress& progress) {
  for (WorkFile* const file : {&streams_, &even_, &odd_, &sensitivities_}) file->sync();
  progress_ = progress;
  const nlohmann::ordered_json json = {{"identity", identity_},
                                       {"forward", progress.forward},
                                       {"backward", progress.backward},
                                       {"loss", progress.loss}};
  const fs::path next = path_ / kNextNote;
  std::error_code failure;
  fs::remove(next, failure);
  OutputFile out(next);
  out.write(json.dump());
  out.finish();
  fs::rename(next, path_ / kNote, failure);
  if (failure) fail(ErrorKind::kMachine, "cannot write {}: {}", next.string(), failure.message());
}

void WorkFolder::remove() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace verbatim::train
