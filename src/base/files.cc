#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace retro {

std::function<void(size_t)> g_write_fault;

namespace {

[[noreturn]] void fail_io(const char* what, const std::filesystem::path& path) {
  fail(ErrorKind::io, "{}: cannot {}: {}", path.string(), what, std::strerror(errno));
}

constexpr size_t kBufferBytes = 1 << 20;

void write_bytes(int fd, const char* data, size_t size, const std::filesystem::path& path) {
  if (g_write_fault) g_write_fault(size);
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      fail_io("write", path);
    }
    data += n;
    size -= static_cast<size_t>(n);
  }
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  // Not to wait for a writer where the path is a pipe, which is refused below.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail_io("open", path);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    const bool folder = S_ISDIR(info.st_mode);
    ::close(fd);
    fail(ErrorKind::io, "{}: {}", path.string(),
         folder ? "is a folder, not a file" : "is not a regular file");
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ > 0) {
    void* at = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
      ::close(fd);
      fail_io("map", path);
    }
    data_ = static_cast<const std::byte*>(at);
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(other.data_), size_(other.size_) {
  other.data_ = nullptr;
  other.size_ = 0;
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = path_;
  temporary_ += ".tmp";
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_io("create", temporary_);
  buffer_.reserve(kBufferBytes);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void OutputFile::write(std::string_view text) {
  size_ += text.size();
  if (buffer_.size() + text.size() > kBufferBytes) flush();
  if (text.size() > kBufferBytes) {
    write_bytes(fd_, text.data(), text.size(), path_);
  } else {
    buffer_.append(text);
  }
}

void OutputFile::flush() {
  if (!buffer_.empty()) write_bytes(fd_, buffer_.data(), buffer_.size(), path_);
  buffer_.clear();
}

void OutputFile::commit() {
  flush();
  if (::fsync(fd_) != 0) fail_io("sync", path_);
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) fail_io("close", path_);
  rename_path(temporary_, path_);
  temporary_.clear();
  sync_folder(path_.parent_path());
}

AppendFile::AppendFile(std::filesystem::path path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_io("open for appending", path_);
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

void AppendFile::append(std::string_view text) {
  struct stat before {};
  const bool regular = ::fstat(fd_, &before) == 0 && S_ISREG(before.st_mode);
  try {
    write_bytes(fd_, text.data(), text.size(), path_);
  } catch (...) {
    if (regular && ::ftruncate(fd_, before.st_size) != 0) {
      // A torn last line is left; readers of such files drop it.
    }
    throw;
  }
}

void AppendFile::sync() {
  // A pipe or a terminal has nothing to sync.
  if (::fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) fail_io("sync", path_);
}

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (g_write_fault) g_write_fault(0);
  if (::rename(from.c_str(), to.c_str()) != 0) fail_io("rename into place", to);
}

std::string read_file(const std::filesystem::path& path, uint64_t limit) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  if (bytes.size() > limit) {
    fail(ErrorKind::io, "{}: is {} bytes, more than the {} that such a file may have", path.string(),
         bytes.size(), limit);
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path at = folder.empty() ? "." : folder;
  const int fd = ::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_io("open", at);
  const int result = ::fsync(fd);
  ::close(fd);
  if (result != 0) fail_io("sync", at);
}

}  // namespace retro
