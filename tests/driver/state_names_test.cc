// Names that exporters give to caches.
#include "driver/states.h"

#include <gtest/gtest.h>

namespace ge {
namespace {

TEST(StateNames, PairsHaveOneName) {
  struct Case {
    const char *past, *present, *name;
  };
  for (auto& c : {Case{"past_key_values.3.key", "present.3.key", "3.key"}, Case{"past_key_values.0.decoder.value", "present.0.decoder.value", "0.decoder.value"},
                  Case{"past_key_values.11.encoder.key", "present.11.encoder.key", "11.encoder.key"}, Case{"past_0", "present_0", "0"}, Case{"past_key_2", "present_key_2", "2.key"},
                  Case{"past_key_self_0", "present_key_self_0", "0.self.key"}, Case{"past_value_cross_5", "present_value_cross_5", "5.cross.value"},
                  Case{"past_key_values_7_value", "present_key_values_7_value", "7.value"}, Case{"past_keys.1", "present_keys.1", "1.key"}, Case{"past_key", "present_key", "key"},
                  Case{"past_kv_cache.4.value", "present_kv_cache.4.value", "4.value"}}) {
    auto in = state_name(c.past), out = state_name(c.present);
    EXPECT_EQ(in.name, c.name) << c.past;
    EXPECT_EQ(out.name, c.name) << c.present;
    EXPECT_TRUE(in.past && !in.present) << c.past;
    EXPECT_TRUE(out.present && !out.past) << c.present;
  }
}

TEST(StateNames, OthersAreNone) {
  for (auto* name : {"input_ids", "attention_mask", "past_sequence_length", "past_key_values_length", "position_ids", "logits", "encoder_hidden_states", "past", "present", "use_cache_branch", "cache_position", "", "..", "past_present_0"})
    EXPECT_EQ(state_name(name).name, "") << name;
}

}  // namespace
}  // namespace ge
