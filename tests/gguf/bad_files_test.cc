// Damaged and hostile files: each is refused with a sentence that names the file, the place and the field.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>

#include "base/error.h"
#include "base/files.h"
#include "gguf/parse.h"
#include "gguf/reader.h"
#include "tests/gguf/raw_file.h"
#include "tests/support/temp_folder.h"

namespace retro::gguf {
namespace {

using test::as_bytes;
using test::RawFile;

constexpr uint64_t kHuge = uint64_t{1} << 60;
constexpr uint32_t kF32 = 0;

struct BadFile {
  std::string name;
  std::string text;
  std::vector<std::string> says;  // all of these
};

std::vector<BadFile> bad_headers() {
  return {
      {"empty", "", {"empty"}},
      {"another_format", "PK\x03\x04 some zip file", {"not a GGUF file", "'PK\\x03\\x04'"}},
      {"lfs_pointer",
       "version https://git-lfs.github.com/spec/v1\noid sha256:00",
       {"git-lfs pointer", "git lfs pull"}},
      {"magic_only", "GGUF", {"the version", "ends at byte 4"}},
      {"version_0", RawFile(0, 0, 0).text(), {"version 0", "2 and 3"}},
      {"version_1", RawFile(0, 0, 1).text(), {"version 1", "2 and 3"}},
      {"version_4", RawFile(0, 0, 4).text(), {"version 4", "2 and 3"}},
      {"big_endian", RawFile(0, 0, 0x03000000).text(), {"big-endian"}},
      {"tensors_2_60", RawFile(kHuge, 0).text(), {"number of tensors", "1152921504606846976"}},
      {"tensors_minus_1", RawFile(UINT64_MAX, 0).text(), {"number of tensors"}},
      {"entries_2_60", RawFile(0, kHuge).text(), {"number of metadata keys", "1152921504606846976"}},
      {"entries_more_than_fit",
       RawFile(0, 5).entry_u32("a", 1).bytes(20).text(),
       {"number of metadata keys is 5"}},
  };
}

std::vector<BadFile> bad_entries() {
  RawFile nested(0, 1);
  nested.string("deep").number(9U).number(9U).number(uint64_t{1}).number(9U).number(uint64_t{1}).bytes(40);
  return {
      {"empty_key",
       RawFile(0, 1).string("").number(4U).number(1U).text(),
       {"metadata entry 0", "key is empty"}},
      {"key_2_40",
       RawFile(0, 1).number(uint64_t{1} << 40).bytes(32).text(),
       {"metadata entry 0", "1099511627776 bytes"}},
      {"string_2_40",
       RawFile(0, 1).string("s").number(8U).number(uint64_t{1} << 40).text(),
       {"key 's'", "1099511627776"}},
      {"string_minus_1", RawFile(0, 1).string("s").number(8U).number(UINT64_MAX).text(), {"key 's'"}},
      {"value_type_13",
       RawFile(0, 1).string("s").number(13U).bytes(8).text(),
       {"key 's'", "unknown type 13"}},
      {"bool_2", RawFile(0, 1).string("b").number(7U).bytes(1, 2).text(), {"key 'b'", "bool is 2"}},
      {"bool_in_array",
       RawFile(0, 1).string("b").number(9U).number(7U).number(uint64_t{2}).bytes(2, 3).text(),
       {"key 'b'", "bool"}},
      {"array_2_60",
       RawFile(0, 1).string("a").number(9U).number(4U).number(kHuge).text(),
       {"key 'a'", "1152921504606846976 elements"}},
      {"array_wraps",
       RawFile(0, 1).string("a").number(9U).number(10U).number((uint64_t{1} << 61) + 1).bytes(8).text(),
       {"key 'a'", "elements"}},
      {"strings_2_60",
       RawFile(0, 1).string("a").number(9U).number(8U).number(kHuge).text(),
       {"key 'a'", "elements"}},
      {"string_in_array_2_40",
       RawFile(0, 1).string("a").number(9U).number(8U).number(uint64_t{1}).number(uint64_t{1} << 40).text(),
       {"key 'a'", "a string of the array"}},
      {"element_type_99",
       RawFile(0, 1).string("a").number(9U).number(99U).number(uint64_t{1}).bytes(8).text(),
       {"key 'a'", "type 99"}},
      {"array_of_arrays", nested.text(), {"key 'deep'", "array of arrays"}},
      {"same_key_twice",
       RawFile(0, 2).entry_u32("twice", 1).entry_u32("twice", 2).text(),
       {"key 'twice'", "there twice"}},
      {"alignment_0",
       RawFile(0, 1).entry_u32("general.alignment", 0).text(),
       {"general.alignment", "is 0", "power of two"}},
      {"alignment_3",
       RawFile(0, 1).entry_u32("general.alignment", 3).text(),
       {"general.alignment", "is 3", "power of two"}},
      {"alignment_4",
       RawFile(0, 1).entry_u32("general.alignment", 4).text(),
       {"general.alignment", "from 8 up"}},
      {"alignment_string",
       RawFile(0, 1).string("general.alignment").number(8U).string("32").text(),
       {"general.alignment", "string", "u32"}},
  };
}

RawFile one_tensor(const std::vector<uint64_t>& dims, uint32_t type = kF32, uint64_t offset = 0) {
  RawFile file(1, 0);
  file.tensor("w", dims, type, offset).pad();
  return file;
}

std::vector<BadFile> bad_tensors() {
  constexpr uint64_t k2To63 = uint64_t{1} << 63;
  return {
      {"dimension_0", one_tensor({4, 0}).bytes(64).text(), {"tensor 'w'", "dimension 1 is 0"}},
      {"first_dimension_0", one_tensor({0}).bytes(64).text(), {"tensor 'w'", "dimension 0 is 0"}},
      {"dimension_2_63", one_tensor({k2To63}).text(), {"tensor 'w'", "dimension 0", "below 2^63"}},
      {"product_wraps_to_small",
       one_tensor({k2To63 - 1, 2, 1, 1}).bytes(64).text(),
       {"tensor 'w'", "dimensions"}},
      {"product_wraps_to_zero",
       one_tensor({uint64_t{1} << 32, uint64_t{1} << 32}).bytes(64).text(),
       {"tensor 'w'", "dimensions"}},
      {"bytes_wrap", one_tensor({uint64_t{1} << 62}).bytes(64).text(), {"tensor 'w'", "dimensions"}},
      {"dimension_2_42_plus_1",
       one_tensor({(uint64_t{1} << 42) + 1}).bytes(64).text(),
       {"tensor 'w'", "past the end"}},
      {"five_dimensions",
       one_tensor({1, 1, 1, 1, 1}).bytes(64).text(),
       {"tensor 'w'", "5 dimensions", "at most 4"}},
      {"dimensions_2_32",
       RawFile(1, 0).string("w").number(UINT32_MAX).bytes(40).text(),
       {"tensor 'w'", "4294967295 dimensions"}},
      {"type_255", one_tensor({4}, 255).bytes(64).text(), {"tensor 'w'", "type 255", "newer program"}},
      {"type_43_of_the_future",
       one_tensor({256}, 43).bytes(64).text(),
       {"tensor 'w'", "type 43", "newer program", "42 (Q2_0)"}},
      {"type_4_removed",
       one_tensor({32}, 4).bytes(64).text(),
       {"tensor 'w'", "type 4 ", "no longer", "convert the model"}},
      {"rows_not_of_blocks_of_256",
       one_tensor({288}, 16).bytes(75).text(),
       {"tensor 'w'", "288", "multiple of the 256", "IQ2_XXS"}},
      {"rows_not_of_blocks_of_64",
       one_tensor({96, 2}, 40).bytes(72).text(),
       {"tensor 'w'", "96", "multiple of the 64", "NVFP4"}},
      {"rows_not_of_blocks",
       one_tensor({33}, 2).bytes(64).text(),
       {"tensor 'w'", "33", "multiple of the 32", "Q4_0"}},
      {"past_the_end", one_tensor({17}).bytes(64).text(), {"tensor 'w'", "68 bytes", "past the end"}},
      {"no_data", one_tensor({1}).text(), {"tensor 'w'", "past the end"}},
      {"offset_past_the_end",
       one_tensor({4}, kF32, 1 << 20).bytes(64).text(),
       {"tensor 'w'", "offset 1048576", "past the end"}},
      {"offset_wraps",
       one_tensor({4}, kF32, UINT64_MAX - 31).bytes(64).text(),
       {"tensor 'w'", "past the end"}},
      {"offset_not_aligned",
       one_tensor({4}, kF32, 8).bytes(64).text(),
       {"tensor 'w'", "offset 8", "alignment 32"}},
      {"empty_name",
       RawFile(1, 0).tensor("", {4}, kF32, 0).pad().bytes(32).text(),
       {"tensor 0", "name is empty"}},
      {"name_of_64_bytes",
       RawFile(1, 0).tensor(std::string(64, 'n'), {4}, kF32, 0).pad().bytes(32).text(),
       {"tensor 0", "64 bytes", "at most 63"}},
      {"name_2_40", RawFile(1, 0).number(uint64_t{1} << 40).bytes(32).text(), {"tensor 0", "the name"}},
      {"same_name_twice",
       RawFile(2, 0).tensor("w", {4}, kF32, 0).tensor("w", {4}, kF32, 32).pad().bytes(64).text(),
       {"tensor 'w'", "there twice"}},
      {"overlap",
       RawFile(2, 0).tensor("a", {16}, kF32, 0).tensor("b", {4}, kF32, 32).pad().bytes(64).text(),
       {"tensor 'b'", "overlaps", "'a'"}},
      {"same_place",
       RawFile(2, 0).tensor("a", {4}, kF32, 0).tensor("b", {4}, kF32, 0).pad().bytes(64).text(),
       {"overlaps"}},
      {"table_cut", RawFile(2, 0).tensor("a", {4}, kF32, 0).bytes(20).text(), {"tensor 1"}},
  };
}

class BadFiles : public testing::TestWithParam<BadFile> {};

TEST_P(BadFiles, AreRefusedByName) {
  const BadFile& bad = GetParam();
  EXPECT_LT(bad.text.size(), 200U);
  const std::clock_t start = std::clock();
  try {
    parse(as_bytes(bad.text), "bad.gguf");
    FAIL() << "was read";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::model);
    EXPECT_EQ(message.rfind("bad.gguf: ", 0), 0U) << message;
    for (const std::string& part : bad.says) EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 10);
}

std::string name_of(const testing::TestParamInfo<BadFile>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Header, BadFiles, testing::ValuesIn(bad_headers()), name_of);
INSTANTIATE_TEST_SUITE_P(Metadata, BadFiles, testing::ValuesIn(bad_entries()), name_of);
INSTANTIATE_TEST_SUITE_P(Tensors, BadFiles, testing::ValuesIn(bad_tensors()), name_of);

TEST(HostileFiles, AMillionNestedArraysAreRefusedAtTheSecond) {
  RawFile file(0, 1);
  file.string("deep");
  for (int i = 0; i < 1000000; ++i) file.number(9U).number(uint64_t{1});
  const std::clock_t start = std::clock();
  EXPECT_THROW(parse(as_bytes(file.text()), "deep.gguf"), Error);
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 10);
}

TEST(HostileFiles, CountsThatTheFileCouldHoldCostNoMemory) {
  // 64 MB of zeros can hold millions of entries or tensors by their least sizes, yet the first one is already
  // wrong.
  const support::TempFolder folder;
  const auto path = folder / "zeros.gguf";
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  for (const RawFile& head : {RawFile(2000000, 0), RawFile(0, 4000000)}) {
    write_file(path, head.text());
    std::filesystem::resize_file(path, 64 << 20);
    const std::clock_t start = std::clock();
    EXPECT_THROW(Reader{path}, Error);
    EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 10);
  }
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 50 << 10);  // in KB
}

TEST(HostileFiles, AKeyLongerThanTheFormatAllowsIsRefused) {
  const auto with_key = [](size_t length) {
    return RawFile(0, 1).entry_u32(std::string(length, 'k'), 1).text();
  };
  EXPECT_NO_THROW(parse(as_bytes(with_key(65535)), "long.gguf"));
  EXPECT_THROW(parse(as_bytes(with_key(65536)), "long.gguf"), Error);
}

TEST(HostileFiles, TextFromTheFileIsEscapedInErrors) {
  const std::string text = RawFile(0, 1).string("a\n\x1b[31mred\xff").number(77U).bytes(8).text();
  try {
    parse(as_bytes(text), "bad.gguf");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'a\\n\\x1b[31mred\\xff'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace retro::gguf
