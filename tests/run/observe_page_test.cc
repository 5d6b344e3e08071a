// The page of [observe] in a real browser, opened from the file system.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "run/observe.h"
#include "tests/support/temp_folder.h"

namespace retro::run {
namespace {

using Json = nlohmann::ordered_json;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 4096> bytes{};
  for (size_t got; (got = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0;)
    text.append(bytes.data(), got);
  ::pclose(pipe);
  return text;
}

void write_run(const std::filesystem::path& directory, std::optional<int64_t> resumed, int64_t first,
               int64_t last) {
  Observer observer({directory, 1, 0}, {"grpo", "run.toml", "base.gguf", 4, resumed}, {});
  for (int64_t update = first; update < last; ++update) {
    for (int64_t group = 0; group < 2; ++group) {
      observer.prompt(
          group,
          Json::parse(
              R"([{"role": "system", "content": "brief"}, {"role": "user", "content": "2 < 3 & <b>4</b>?"}])"));
      for (int64_t member = 0; member < 3; ++member) {
        ObservedRollout one;
        one.update = update;
        one.group = group;
        one.member = member;
        one.prompt = group;
        one.completion = "u" + std::to_string(update) + " g" + std::to_string(group) + " m" +
                         std::to_string(member) + " <img src=x onerror=alert(1)>";
        one.tokens = 4;
        one.reward = one.reward_raw = static_cast<double>(group * 10 + member);
        one.truncated = member == 0;
        one.skip = group == 0 ? SkipReason::zero_signal : SkipReason::none;
        one.advantage = 0.5;
        observer.rollout(one);
      }
      observer.selection({update, group, {}, group == 0 ? SkipReason::zero_signal : SkipReason::none, 1, 1});
      observer.outcome(update, group, group == 1);
    }
    const std::array<MetricValue, 2> metrics = {MetricValue{"reward/mean", static_cast<double>(update)},
                                                MetricValue{"custom/metric", 1.0}};
    observer.update(update, false, metrics);
  }
}

// Runs behind the page's own script; what it finds stands in an element of its own.
constexpr const char* kProbe = R"(<script>
const press = key => document.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
const chosenText = () => document.querySelector(".row.chosen .text").textContent;
const found = {};
found.first = chosenText();
found.rows = document.querySelectorAll(".row").length;
found.groups = document.querySelectorAll(".group").length;
press("j"); found.next = chosenText();
press("k"); found.back = chosenText();
press("c"); press("j"); press("j"); press("j");
found.compared = [...document.querySelectorAll("article .completion pre")].map(one => one.textContent);
found.skips = document.querySelectorAll(".tag.skip").length;
found.trained = document.querySelectorAll(".tag.trained").length;
found.images = document.querySelectorAll("img").length;
found.prompt = document.querySelector("article .message:nth-child(3) pre").textContent;
found.curves = [...document.querySelectorAll("figcaption")].map(one => one.textContent);
document.getElementById("filter").value = "truncated";
document.getElementById("filter").dispatchEvent(new Event("change"));
found.truncated = document.querySelectorAll(".row").length;
document.getElementById("filter").value = "";
document.getElementById("search").value = "g1 m2";
document.getElementById("search").dispatchEvent(new Event("input"));
found.searched = document.querySelectorAll(".row").length;
document.getElementById("search").value = "";
press("["); found.earlier = chosenText();
found.updates = [...document.querySelectorAll("#update option")].map(one => one.value);
const result = document.createElement("pre");
result.id = "probe";
result.textContent = JSON.stringify(found);
document.body.append(result);
</script></body>)";

class ObservePage : public testing::Test {
 protected:
  void SetUp() override {
    browser_ = output_of("command -v chromium || command -v google-chrome");
    if (browser_.empty()) GTEST_SKIP() << "needs chromium, which ./dev test installs";
    browser_.pop_back();
  }
  /// The page's elements as text, after its scripts ran.
  std::string dump(const std::string& page) {
    write_file(directory_ / "index.html", page);
    const std::string home = (folder_ / "home").string();
    return output_of("HOME='" + home + "' timeout 60 '" + browser_ +
                     "' --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 --user-data-dir='" +
                     home + "' --dump-dom 'file://" + (directory_ / "index.html").string() + "' 2>/dev/null");
  }
  Json probe() {
    std::string page(kObservePage);
    const size_t end = page.rfind("</body>");
    page.replace(end, 7, kProbe);
    std::string dom = dump(page);
    const size_t begin = dom.find("<pre id=\"probe\">");
    if (begin == std::string::npos) return Json::object();
    std::string text = dom.substr(begin + 16, dom.find("</pre>", begin) - begin - 16);
    for (const auto& [escape, plain] :
         {std::pair{"&lt;", "<"}, std::pair{"&gt;", ">"}, std::pair{"&amp;", "&"}}) {
      for (size_t at = 0; (at = text.find(escape, at)) != std::string::npos; ++at)
        text.replace(at, std::string(escape).size(), plain);
    }
    return Json::parse(text);
  }

  support::TempFolder folder_;
  std::filesystem::path directory_ = folder_ / "observe";
  std::string browser_;
};

TEST_F(ObservePage, ShowsGroupsByRewardWithKeysFiltersAndComparison) {
  write_run(directory_, std::nullopt, 0, 3);
  write_run(directory_, 2, 2, 4);
  const Json found = probe();
  ASSERT_TRUE(found.contains("first")) << "the page's script did not run to its end";
  const std::string tail = " <img src=x onerror=alert(1)>";
  EXPECT_EQ(found.at("first"), "u3 g1 m2" + tail);
  EXPECT_EQ(found.at("next"), "u3 g1 m1" + tail);
  EXPECT_EQ(found.at("back"), "u3 g1 m2" + tail);
  EXPECT_EQ(found.at("rows"), 6);
  EXPECT_EQ(found.at("groups"), 2);
  EXPECT_EQ(found.at("compared"), Json::array({"u3 g1 m2" + tail, "u3 g0 m2" + tail}));
  EXPECT_EQ(found.at("skips"), 3);
  EXPECT_EQ(found.at("trained"), 3);
  EXPECT_EQ(found.at("images"), 0);
  EXPECT_EQ(found.at("prompt"), "2 < 3 & <b>4</b>?");
  EXPECT_EQ(found.at("truncated"), 2);
  EXPECT_EQ(found.at("searched"), 1);
  EXPECT_EQ(found.at("earlier"), "u2 g1 m2" + tail);
  EXPECT_EQ(found.at("updates"), Json::array({"0", "1", "2", "3"}));
  EXPECT_EQ(found.at("curves"),
            Json::array({"reward/mean", "0 → 3, from 0 to 3", "custom/metric", "1 → 1, from 1 to 1"}));
}

TEST_F(ObservePage, SaysSoWhereThereIsNoRunYet) {
  std::filesystem::create_directories(directory_);
  write_file(directory_ / "observe.js", "");
  EXPECT_NE(dump(std::string(kObservePage)).find("holds no run yet"), std::string::npos);
}

}  // namespace
}  // namespace retro::run
