#include "text/jinja_strings.h"

#include <algorithm>

#include "base/error.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

namespace {

bool holds_character(std::string_view set, std::string_view character) {
  for (size_t at = 0; at < set.size();) {
    const size_t size = code_point_at(set, at).size;
    if (set.substr(at, size) == character) return true;
    at += size;
  }
  return false;
}

void push(List& list, const Str* string, Arena& arena) {
  arena.charge(sizeof(Value));
  arena.step();
  list.items.push_back(Value::of(string));
}

Origin origin_at(const Str& string, size_t at) {
  if (string.runs.empty()) return string.origin;
  const auto run = std::partition_point(string.runs.begin(), string.runs.end(),
                                        [&](const Run& each) { return each.end <= at; });
  return run == string.runs.end() ? string.origin : run->origin;
}

List* split_at_space(const Str& string, int64_t limit, Arena& arena) {
  List* parts = arena.list();
  const std::string_view bytes = string.bytes;
  arena.step(bytes.size() / 64);
  size_t at = skip_space(bytes, 0);
  while (at < bytes.size()) {
    if (limit >= 0 && static_cast<int64_t>(parts->items.size()) == limit) {
      // As in Python, the rest keeps the space at its far end.
      push(*parts, arena.slice(string, at, bytes.size()), arena);
      break;
    }
    size_t end = at;
    while (end < bytes.size()) {
      const CodePoint point = code_point_at(bytes, end);
      if (is_space(point.value)) break;
      end += point.size;
    }
    push(*parts, arena.slice(string, at, end), arena);
    at = skip_space(bytes, end);
  }
  return parts;
}

List* rsplit_at_space(const Str& string, int64_t limit, Arena& arena) {
  List* parts = arena.list();
  const std::string_view bytes = string.bytes;
  arena.step(bytes.size() / 64);
  size_t end = skip_space_back(bytes, bytes.size());
  while (end > 0) {
    if (limit >= 0 && static_cast<int64_t>(parts->items.size()) == limit) {
      push(*parts, arena.slice(string, 0, end), arena);
      break;
    }
    size_t begin = end;
    while (begin > 0) {
      const size_t before = previous_character(bytes, begin);
      if (is_space(code_point_at(bytes, before).value)) break;
      begin = before;
    }
    push(*parts, arena.slice(string, begin, end), arena);
    end = skip_space_back(bytes, begin);
  }
  std::reverse(parts->items.begin(), parts->items.end());
  return parts;
}

}  // namespace

const Str* strip(const Str& string, const Str* characters, bool left, bool right, Arena& arena) {
  const std::string_view bytes = string.bytes;
  size_t begin = 0;
  size_t end = bytes.size();
  const auto drops = [&](size_t at, size_t size) {
    arena.step(1 + (characters != nullptr ? characters->bytes.size() / 8 : 0));
    return characters == nullptr ? is_space(code_point_at(bytes, at).value)
                                 : holds_character(characters->bytes, bytes.substr(at, size));
  };
  while (left && begin < end) {
    const size_t size = code_point_at(bytes, begin).size;
    if (!drops(begin, size)) break;
    begin += size;
  }
  while (right && end > begin) {
    const size_t before = previous_character(bytes, end);
    if (!drops(before, end - before)) break;
    end = before;
  }
  return arena.slice(string, begin, end);
}

List* split(const Str& string, const Str* separator, int64_t limit, Arena& arena) {
  if (separator == nullptr) return split_at_space(string, limit, arena);
  if (separator->bytes.empty()) fail(ErrorKind::model, "'split' is given an empty separator");
  List* parts = arena.list();
  arena.step(string.bytes.size() / 64);
  size_t at = 0;
  while (limit < 0 || static_cast<int64_t>(parts->items.size()) < limit) {
    const size_t found = string.bytes.find(separator->bytes, at);
    if (found == std::string_view::npos) break;
    push(*parts, arena.slice(string, at, found), arena);
    at = found + separator->bytes.size();
  }
  push(*parts, arena.slice(string, at, string.bytes.size()), arena);
  return parts;
}

List* rsplit(const Str& string, const Str* separator, int64_t limit, Arena& arena) {
  if (separator == nullptr) return rsplit_at_space(string, limit, arena);
  if (separator->bytes.empty()) fail(ErrorKind::model, "'rsplit' is given an empty separator");
  List* parts = arena.list();
  arena.step(string.bytes.size() / 64);
  size_t end = string.bytes.size();
  while (limit < 0 || static_cast<int64_t>(parts->items.size()) < limit) {
    if (end < separator->bytes.size()) break;
    const size_t found = string.bytes.rfind(separator->bytes, end - separator->bytes.size());
    if (found == std::string_view::npos) break;
    push(*parts, arena.slice(string, found + separator->bytes.size(), end), arena);
    end = found;
  }
  push(*parts, arena.slice(string, 0, end), arena);
  std::reverse(parts->items.begin(), parts->items.end());
  return parts;
}

List* split_lines(const Str& string, bool keep_ends, Arena& arena) {
  List* lines = arena.list();
  const std::string_view bytes = string.bytes;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint point = code_point_at(bytes, at);
    size_t end = at + point.size;
    if (is_line_break(point.value)) {
      if (point.value == '\r' && end < bytes.size() && bytes[end] == '\n') ++end;
      push(*lines, arena.slice(string, begin, keep_ends ? end : at), arena);
      begin = end;
    }
    at = end;
  }
  arena.step(bytes.size() / 16);
  if (begin < bytes.size()) push(*lines, arena.slice(string, begin, bytes.size()), arena);
  return lines;
}

const Str* replace(const Str& string, const Str& old, const Str& fresh, int64_t limit, Arena& arena) {
  TextBuilder out(arena);
  const Str& put = string.markup ? *escape_html(fresh, arena) : fresh;
  const std::string_view bytes = string.bytes;
  size_t at = 0;
  for (int64_t done = 0; limit < 0 || done < limit; ++done) {
    arena.step();
    if (old.bytes.empty()) {
      // Python puts the new text before every character and at the end.
      out.append(put);
      if (at == bytes.size()) break;
      const size_t size = code_point_at(bytes, at).size;
      out.append(string, at, at + size);
      at += size;
      continue;
    }
    const size_t found = bytes.find(old.bytes, at);
    if (found == std::string_view::npos) break;
    out.append(string, at, found);
    out.append(put);
    at = found + old.bytes.size();
  }
  out.append(string, at, bytes.size());
  return out.finish(string.markup);
}

const Str* join(const List& parts, const Str& separator, Arena& arena) {
  TextBuilder out(arena);
  bool first = true;
  for (const Value& part : parts.items) {
    arena.step();
    if (!first) out.append(separator);
    first = false;
    append_str(part, out);
  }
  return out.finish();
}

namespace {

bool is_cased_at(std::string_view bytes, size_t at) {
  const int32_t c = code_point_at(bytes, at).value;
  return is_cased_upper(c) || is_cased_lower(c);
}

/// A capital sigma that ends a word (Unicode's Final_Sigma, without its ignorable characters).
bool is_final_sigma(std::string_view bytes, size_t at) {
  constexpr size_t kSize = 2;
  if (code_point_at(bytes, at).value != 0x3a3) return false;
  const bool after_letter = at > 0 && is_cased_at(bytes, previous_character(bytes, at));
  return after_letter && (at + kSize >= bytes.size() || !is_cased_at(bytes, at + kSize));
}

}  // namespace

const Str* change_case(const Str& string, Case to, Arena& arena) {
  TextBuilder out(arena);
  bool inside_word = false;
  bool first = true;
  std::string mapped;
  for (size_t at = 0; at < string.bytes.size();) {
    const CodePoint point = code_point_at(string.bytes, at);
    arena.step();
    mapped.clear();
    const bool cased = is_cased_upper(point.value) || is_cased_lower(point.value);
    Case each = to;
    if (to == Case::title) each = inside_word ? Case::lower : Case::title;
    if (to == Case::capitalize) each = first ? Case::title : Case::lower;
    if (to == Case::swap) each = is_cased_upper(point.value) ? Case::lower : Case::upper;
    if (each == Case::upper) {
      append_upper(point.value, mapped);
    } else if (each == Case::lower) {
      if (is_final_sigma(string.bytes, at)) {
        mapped = "ς";
      } else {
        append_lower(point.value, mapped);
      }
    } else {
      append_title(point.value, mapped);
    }
    out.append(mapped, origin_at(string, at));
    inside_word = cased;
    first = false;
    at += point.size;
  }
  return out.finish(string.markup);
}

const Str* title_words(const Str& string, Arena& arena) {
  TextBuilder out(arena);
  bool begins = true;
  std::string mapped;
  for (size_t at = 0; at < string.bytes.size();) {
    const CodePoint point = code_point_at(string.bytes, at);
    arena.step();
    mapped.clear();
    const bool breaks = is_space(point.value) ||
                        (point.value < 0x80 && std::string_view("-({[<").find(
                                                   static_cast<char>(point.value)) != std::string_view::npos);
    if (begins) {
      append_upper(point.value, mapped);
    } else {
      append_lower(point.value, mapped);
    }
    out.append(mapped, origin_at(string, at));
    begins = breaks;
    at += point.size;
  }
  return out.finish();
}

const Str* reverse(const Str& string, Arena& arena) {
  TextBuilder out(arena);
  for (size_t end = string.bytes.size(); end > 0;) {
    const size_t begin = previous_character(string.bytes, end);
    arena.step();
    out.append(string, begin, end);
    end = begin;
  }
  return out.finish();
}

const Str* pad(const Str& string, int64_t width, std::string_view fill, int side, Arena& arena) {
  const auto size = static_cast<int64_t>(count_characters(string.bytes));
  const int64_t missing = std::max<int64_t>(width - size, 0);
  // str.center puts the odd one left when the width is odd.
  const int64_t left = side == 0 ? 0 : side == 1 ? missing : missing / 2 + (missing & width & 1);
  TextBuilder out(arena);
  const auto repeat = [&](int64_t times) {
    for (int64_t i = 0; i < times; ++i) {
      arena.step();
      out.append(fill);
    }
  };
  repeat(left);
  out.append(string);
  repeat(missing - left);
  return out.finish(string.markup);
}

const Str* indent(const Str& string, const Str& indention, bool first, bool blank, Arena& arena) {
  // jinja2 appends a newline so that a last line break is kept.
  TextBuilder with_newline(arena);
  with_newline.append(string);
  with_newline.append("\n");
  const List* lines = split_lines(*with_newline.finish(), false, arena);
  TextBuilder out(arena);
  if (first) out.append(indention);
  for (size_t i = 0; i < lines->items.size(); ++i) {
    const Str& line = *lines->items[i].string;
    if (i > 0) {
      out.append("\n");
      if (blank || !line.bytes.empty()) out.append(indention);
    }
    out.append(line);
  }
  return out.finish(string.markup);
}

int64_t find(const Str& string, const Str& part, bool last, const Value* begin, const Value* end,
             Arena& arena) {
  const Value whole = Value::of(&string);
  const Str& piece = *slice(whole, begin, end, nullptr, arena).string;
  arena.step(piece.bytes.size() / 64);
  const size_t at = last ? piece.bytes.rfind(part.bytes) : piece.bytes.find(part.bytes);
  if (at == std::string_view::npos) return -1;
  const auto skipped = static_cast<size_t>(piece.bytes.data() - string.bytes.data());
  return static_cast<int64_t>(count_characters(string.bytes.substr(0, skipped + at)));
}

int64_t count(const Str& string, const Str& part) {
  if (part.bytes.empty()) return static_cast<int64_t>(count_characters(string.bytes)) + 1;
  int64_t found = 0;
  for (size_t at = string.bytes.find(part.bytes); at != std::string_view::npos;
       at = string.bytes.find(part.bytes, at + part.bytes.size())) {
    ++found;
  }
  return found;
}

}  // namespace retro::text::jinja
