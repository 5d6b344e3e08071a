// Files that are read by mapping and written whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace retro {

/// A read-only mapping of a whole file. Throws Error(io) when it cannot be opened or mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Writes a file under a temporary name beside `path`; `commit` syncs it and renames it into place, so that
/// `path` is the old file or the whole new one. Without a commit the temporary file is removed.
/// Every failure (a full disk among them) throws Error(io) naming the path.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  uint64_t size() const { return size_; }
  void commit();

 private:
  void flush();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::string buffer_;
  uint64_t size_ = 0;
  int fd_ = -1;
};

/// The whole file as a string; throws Error(io) when it is larger than `limit` bytes.
std::string read_file(const std::filesystem::path& path, uint64_t limit = UINT64_MAX);

/// Replaces `path` with `text`, whole or not at all.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Makes renames and new entries in a folder durable.
void sync_folder(const std::filesystem::path& folder);

/// A file that grows by whole lines: each `append` is one write at its end, so that a reader, or a run that
/// was killed, sees lines whole. Creates the file where there is none. Failures throw Error(io) naming the
/// path.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path);
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// On failure takes back what was written of `text`, as far as the file system lets it.
  void append(std::string_view text);
  void sync();

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

/// Renames a file or folder. Throws Error(io) naming it.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

/// Called before each write with the bytes about to be written, and with 0 before renames and removals; a
/// test makes the n-th one throw Error(io), or the process die there.
extern std::function<void(size_t bytes)> g_write_fault;

}  // namespace retro
