// The lines of the reward protocol.
#include "reward/protocol.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace retro::reward {
namespace {

TEST(RewardProtocol, LinesAreThoseOfTheProtocol) {
  EXPECT_EQ(greeting_line(), "{\"protocol\":\"retrograd-reward/1\"}\n");
  EXPECT_EQ(request_line({"say \"hi\"\n", "hé"}, std::nullopt),
            "{\"prompt\":\"say \\\"hi\\\"\\n\",\"completion\":\"hé\"}\n");
  EXPECT_EQ(request_line({"p", "c"}, BatchPlace{7, 2}),
            "{\"prompt\":\"p\",\"completion\":\"c\",\"_retrograd_batch\":7,\"_retrograd_index\":2}\n");
  EXPECT_EQ(batch_end_line(7), "{\"_retrograd_batch_end\":7}\n");
}

TEST(RewardProtocol, ACompletionThatIsNotUtf8StillMakesALine) {
  EXPECT_EQ(request_line({"p", "a\xff"}, std::nullopt),
            "{\"prompt\":\"p\",\"completion\":\"a\xEF\xBF\xBD\"}\n");
}

TEST(RewardProtocol, NumbersAreReadInAnySpelling) {
  for (const char* line : {"{\"reward\":3}", "{\"reward\": 3.0}\r", " {\"reward\" : 30e-1 } "}) {
    EXPECT_EQ(parse_reward(line, std::nullopt, false).reward, 3.0) << line;
  }
  EXPECT_EQ(parse_reward("{\"reward\":18446744073709551616}", std::nullopt, false).reward, 0x1p64);
}

TEST(RewardProtocol, AnEchoIsAWholeNumberThatIsEqual) {
  const BatchPlace place{1, 0};
  EXPECT_EQ(parse_reward("{\"_retrograd_index\":0,\"_retrograd_batch\":1,\"reward\":1}", place, false).reward,
            1.0);
  for (const char* line :
       {"{\"reward\":1}", "{\"reward\":1,\"_retrograd_batch\":1}", "{\"reward\":1,\"_retrograd_index\":0}",
        "{\"reward\":1,\"_retrograd_batch\":1.0,\"_retrograd_index\":0}",
        "{\"reward\":1,\"_retrograd_batch\":\"1\",\"_retrograd_index\":0}",
        "{\"reward\":1,\"_retrograd_batch\":0,\"_retrograd_index\":0}",
        "{\"reward\":1,\"_retrograd_batch\":1,\"_retrograd_index\":null}"}) {
    EXPECT_THROW(parse_reward(line, place, false), Error) << line;
  }
}

}  // namespace
}  // namespace retro::reward
