// Run documents as texts, and what reading them says.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "run/document.h"

namespace retro::run {

inline const std::string kHead =
    "[run]\nalgorithm = \"sft\"\n"
    "[model]\npath = \"base.gguf\"\n"
    "[output]\npath = \"out/adapter.gguf\"\n"
    "[sft]\ndata = \"train.jsonl\"\n";
inline const std::string kMinimal = kHead + "[lora]\n";

inline std::string error_of(const std::string& text, const Overrides& overrides = {}) {
  try {
    parse_document(text, "folder/run.toml", overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
    return error.what();
  }
  return {};
}

inline Document load(const std::string& text, const Overrides& overrides = {}) {
  return parse_document(text, "folder/run.toml", overrides);
}

inline void expect_error(const std::string& text, const std::vector<std::string>& fragments) {
  const std::string error = error_of(text);
  ASSERT_FALSE(error.empty()) << "accepted:\n" << text;
  for (const std::string& fragment : fragments) {
    EXPECT_NE(error.find(fragment), std::string::npos) << "document:\n"
                                                       << text << "\nerror:\n"
                                                       << error << "\nlacks: " << fragment;
  }
}

}  // namespace retro::run
