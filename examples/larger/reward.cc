// Scores answers to "Which number is larger, A or B?" as reward.py does.
//
//   c++ -std=c++17 -O2 -o reward reward.cc        (needs nlohmann-json3-dev)
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

// The runs of digits in a text, without leading zeros: they may be longer than any integer.
std::vector<std::string> numbers(const std::string& text) {
  std::vector<std::string> found;
  bool inside = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !inside) found.emplace_back();
    if (digit && found.back() == "0") found.back().clear();
    if (digit) found.back() += c;
    inside = digit;
  }
  return found;
}

bool smaller(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

double score(const std::string& prompt, const std::string& completion) {
  const std::vector<std::string> asked = numbers(prompt), answered = numbers(completion);
  return !answered.empty() && answered.back() == *std::max_element(asked.begin(), asked.end(), smaller) ? 1
                                                                                                        : 0;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json message = nlohmann::json::parse(line);
    if (message.contains("completion")) {
      message["reward"] = score(message.at("prompt"), message.at("completion"));
      message.erase("prompt");
      message.erase("completion");
    }
    std::cout << message << std::endl;  // flushed, line by line
  }
}
