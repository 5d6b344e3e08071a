#include "text/digit_groups.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/utf8.h"

namespace retro::text {

namespace {

bool is_number(char32_t character) {
  if (character < 0x80) return character >= '0' && character <= '9';
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(character));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

}  // namespace

void cut_before_digit_groups(std::string_view piece, size_t begin, std::vector<size_t>& ends) {
  std::vector<size_t> run;  // where the numbers of the run end
  size_t last = 0;
  const auto close = [&] {
    for (size_t count = (run.size() - 1) % 3 + 1; count <= run.size(); count += 3) {
      ends.push_back(begin + run[count - 1]);
    }
    last = run.back();
    run.clear();
  };
  for (size_t at = 0; at < piece.size();) {
    const Utf8Step step = utf8_step(piece, at);
    at += step.length;
    if (is_number(step.character)) {
      run.push_back(at);
    } else if (!run.empty()) {
      close();
    }
  }
  if (!run.empty()) close();
  if (last < piece.size()) ends.push_back(begin + piece.size());
}

void cut_digits_by_three(std::string_view piece, size_t begin, std::vector<size_t>& ends) {
  const size_t first = ends.size();
  ends.push_back(begin + piece.size());
  size_t digits = 0;
  for (size_t at = piece.size(); at-- > 1;) {
    digits = piece[at] >= '0' && piece[at] <= '9' ? digits + 1 : 0;
    if (digits > 0 && digits % 3 == 0) ends.push_back(begin + at);
  }
  std::reverse(ends.begin() + static_cast<std::ptrdiff_t>(first), ends.end());
}

}  // namespace retro::text
