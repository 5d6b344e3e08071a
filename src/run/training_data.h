// The data of a run: files checked before the model loads, then tokens.
#pragma once

#include <optional>

#include "data/records.h"
#include "run/document.h"
#include "run/model_context.h"
#include "run/reporter.h"

namespace retro::run {

/// The files of a document, their lines checked.
struct DataFiles {
  data::DataFile train;
  std::optional<data::DataFile> evaluation;
};

/// A document's word for a format; none stays to be inferred.
std::optional<data::FileFormat> file_format(const std::optional<DataFormat>& format);

DataFiles open_data(const Document& document);

data::RecordOptions record_options(const Document& document);

/// The tokens of one file; says what was left out. The chat template is asked for where the file holds chats.
data::Records tokenize(const data::DataFile& file, const ModelContext& context,
                       const data::RecordOptions& options, Reporter& reporter);

/// The records that a run trains and evaluates on.
struct RunRecords {
  data::Records training;
  std::optional<data::Records> evaluation;  // with evaluation.max_examples applied
};

RunRecords load_records(const DataFiles& files, const Document& document, const ModelContext& context,
                        Reporter& reporter);

/// At most `count` records, spread evenly over the file.
void thin_out(data::Records& records, int64_t count);

}  // namespace retro::run
