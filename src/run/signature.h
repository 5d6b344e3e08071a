// What makes two runs the same run: the part of a document that decides the bytes of its result.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/document.h"

namespace retro::run {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// `fixed` must be equal on resume (epochs and updates may grow while the schedule is constant); a change of
/// a field of `said` is allowed and told. Paths are in neither: files count by their content, which the
/// caller adds to `fixed` (fingerprints of the base, the data, the initial adapter).
struct Signature {
  Fields fixed;
  Fields said;
};

Signature signature(const Document& document);

/// The first difference that forbids resuming `saved` as `now`, as "training.lr was 0.0001 and is 0.001", or
/// empty when there is none. Takes the signatures as a checkpoint holds them, fields of the caller included.
std::string signature_difference(const Signature& saved, const Signature& now);

/// One sentence for each changed field of `said`.
std::vector<std::string> signature_remarks(const Signature& saved, const Signature& now);

/// 32 hex digits over the fixed part. Equal for documents whose runs write the same adapter, so that memory
/// levers and threads change no byte of its provenance.
std::string document_hash(const Document& document);

}  // namespace retro::run
