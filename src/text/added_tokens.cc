#include "text/added_tokens.h"

#include <algorithm>
#include <queue>
#include <string>

namespace retro::text {

AddedTokens::AddedTokens(const Vocabulary& vocabulary) {
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const bool added = vocabulary.is_control(id) || vocabulary.type(id) == TokenType::user_defined;
    if (added && !vocabulary.text(id).empty()) entries_.push_back({std::string(vocabulary.text(id)), id, -1});
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  std::vector<int32_t> prefixes;
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    while (!prefixes.empty() &&
           !entry.text.starts_with(entries_[static_cast<size_t>(prefixes.back())].text)) {
      prefixes.pop_back();
    }
    if (!prefixes.empty()) entry.shorter = prefixes.back();
    prefixes.push_back(static_cast<int32_t>(i));
    ++first_byte_[static_cast<uint8_t>(entry.text[0]) + 1];
  }
  for (size_t byte = 0; byte < 256; ++byte) first_byte_[byte + 1] += first_byte_[byte];
}

int32_t AddedTokens::longest_at(std::string_view text, size_t at) const {
  const auto first = static_cast<uint8_t>(text[at]);
  size_t low = first_byte_[first];
  size_t high = first_byte_[first + 1];
  int32_t longest = -1;
  // Entries low to high agree with the text in their first `depth` bytes.
  for (size_t depth = 1; low < high; ++depth) {
    if (entries_[low].text.size() == depth) longest = static_cast<int32_t>(low++);
    if (at + depth == text.size()) break;
    const auto byte = static_cast<uint8_t>(text[at + depth]);
    const auto begin = entries_.begin();
    const auto byte_of = [depth](const Entry& entry) { return static_cast<uint8_t>(entry.text[depth]); };
    const auto lower = std::partition_point(begin + low, begin + high,
                                            [&](const Entry& entry) { return byte_of(entry) < byte; });
    const auto upper =
        std::partition_point(lower, begin + high, [&](const Entry& entry) { return byte_of(entry) == byte; });
    low = static_cast<size_t>(lower - begin);
    high = static_cast<size_t>(upper - begin);
  }
  return longest;
}

int32_t AddedTokens::allowed_at(int32_t entry, size_t at, const Allowed& allowed) const {
  while (entry >= 0) {
    const Entry& candidate = entries_[static_cast<size_t>(entry)];
    if (allowed(candidate.id, at, at + candidate.text.size())) break;
    entry = candidate.shorter;
  }
  return entry;
}

void AddedTokens::resolve(std::vector<Candidate> cluster, const Allowed& allowed,
                          std::vector<TokenSpan>& found) const {
  const auto take = [&](const Candidate& c) {
    found.push_back({entries_[static_cast<size_t>(c.entry)].id, c.begin, c.begin + length(c.entry)});
  };
  if (cluster.size() == 1) return take(cluster.front());
  const size_t origin = cluster.front().begin;
  size_t end = origin;
  for (const Candidate& c : cluster) end = std::max(end, c.begin + length(c.entry));
  const auto after = [&](const Candidate& a, const Candidate& b) {
    return length(a.entry) != length(b.entry) ? length(a.entry) < length(b.entry) : a.begin > b.begin;
  };
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(after)> queue(after, std::move(cluster));
  std::vector<bool> covered(end - origin, false);
  const size_t first_found = found.size();
  while (!queue.empty()) {
    const Candidate c = queue.top();
    queue.pop();
    const size_t begin = c.begin - origin;
    if (covered[begin]) continue;
    // What is taken is at least as long as c, so an overlap shows at c's ends.
    if (!covered[begin + length(c.entry) - 1]) {
      take(c);
      std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(begin), length(c.entry), true);
      continue;
    }
    const int32_t shorter = allowed_at(entries_[static_cast<size_t>(c.entry)].shorter, c.begin, allowed);
    if (shorter >= 0) queue.push({c.begin, shorter});
  }
  std::sort(found.begin() + static_cast<std::ptrdiff_t>(first_found), found.end(),
            [](const TokenSpan& a, const TokenSpan& b) { return a.begin < b.begin; });
}

std::vector<TokenSpan> AddedTokens::find(std::string_view text, size_t begin, size_t end,
                                         const Allowed& allowed) const {
  std::vector<TokenSpan> found;
  if (entries_.empty()) return found;
  const auto within = text.substr(0, end);
  std::vector<Candidate> cluster;  // candidates of which each overlaps the ones before
  size_t cluster_end = begin;
  for (size_t at = begin; at < end; ++at) {
    const auto first = static_cast<uint8_t>(text[at]);
    if (first_byte_[first] == first_byte_[first + 1]) continue;
    const int32_t entry = allowed_at(longest_at(within, at), at, allowed);
    if (entry < 0) continue;
    if (at >= cluster_end && !cluster.empty()) {
      resolve(std::move(cluster), allowed, found);
      cluster.clear();
    }
    cluster.push_back({at, entry});
    cluster_end = std::max(cluster_end, at + length(entry));
  }
  if (!cluster.empty()) resolve(std::move(cluster), allowed, found);
  return found;
}

}  // namespace retro::text
