// Small vocabularies in the form of real ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace retro::test {

struct ToyVocabulary {
  std::vector<std::string> tokens;
  std::vector<float> scores;  // SentencePiece only
  std::vector<int32_t>
      types;  // llama.cpp's: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
  std::vector<std::string> merges;  // byte-level BPE only
};

/// Byte-level BPE as GPT-2 has it: <|endoftext|>, <|im_start|>, <|im_end|> (0, 1, 2), the 256 bytes (space,
/// newline and letters first), then merges. `size` 0: all of it (281); smaller: cut, below 259 without a
/// token for every byte; larger: padded with unused tokens.
ToyVocabulary toy_bpe(int64_t size);

/// SentencePiece with byte fallback as Gemma has it: <pad>, <eos>, <bos>, <unk>, <start_of_turn>,
/// <end_of_turn> (0 to 5), <0x00> … <0xFF>, "\n" as a user-defined token, then pieces whose score falls by
/// one. `size` as above (349 in all; bytes are complete from 262).
ToyVocabulary toy_spm(int64_t size);

}  // namespace retro::test
