#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/model_data.h"
#include "kv/cache.h"
#include "verbatim/cache.h"

namespace verbatim {

/// The contents of a session's file, without the keys and values themselves.
struct SavedSession {
  std::vector<int32_t> tokens;
  CacheOptions cache;     ///< how the keys and values are stored
  std::string reading;    ///< the recipe's reading that they were computed in
  int64_t positions = 0;  ///< how many positions the keys and values are for; 0: there are none in the file
};

/// Writes a session to a new file: its tokens, and its keys and values where the cache can give them. Throws
/// Error(kBadInput) when there is a file of that name or none can be made, Error(kMachine) when writing
/// fails.
void write_session(const std::filesystem::path& path, const SavedSession& session, const KvCache& cache,
                   const ModelData& model);

/// A session's file that was read and checked.
struct LoadedSession {
  SavedSession session;
  std::vector<std::byte> stored;  ///< the bytes of keys and values, as KvCache::stored() has them
};

/// The model that a session's file must belong to.
struct SessionModel {
  std::string name;          ///< as messages name it
  uint64_t fingerprint = 0;  ///< a number that differs between models with different keys and values
  int32_t vocab_size = 0;
};

/// Takes the bytes of a session's file apart, which messages name `where`. Throws like read_session().
LoadedSession parse_session(std::span<const std::byte> bytes, const std::string& where,
                            const SessionModel& model);

/// Reads a session's file. Keys and values that kernels of another rounding computed are left out, because
/// their bits would differ. Throws Error(kBadInput) when the file is no session's, is damaged, or belongs to
/// another model.
LoadedSession read_session(const std::filesystem::path& path, const ModelData& model);

}  // namespace verbatim
