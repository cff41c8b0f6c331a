#include "import/tensors.h"

#include <gmock/gmock.h>

#include "import/proto_writer.h"
#include "import/sha1.h"

namespace ge::onnx {
namespace {

using namespace ge::test;
using testing::HasSubstr;

Result<Tensor> read(const Message& m) {
  auto file = m.file();
  auto proto = parse_tensor(file->bytes());
  if (!proto) return std::move(proto).take_error();
  return TensorReader(file, ExternalData()).read(*proto);
}

std::string raw_of(const Tensor& t) { return {reinterpret_cast<const char*>(t.data()), t.bytes()}; }

std::string fixed32(std::initializer_list<float> v) { return raw(v); }

// One tensor of every plain type, raw and in its typed field: the same bytes must come out.
struct TypeCase {
  int dtype;
  int64_t count;
  std::string raw_data;
  int field;
  std::string typed;  // packed content of the field
};

TEST(ReadTensor, RawAndTypedAgreeForEveryType) {
  auto v = [](std::vector<int64_t> x) { return packed(x).str(); };
  std::vector<TypeCase> cases = {
      {1, 2, raw<float>({1.5f, -2}), 4, fixed32({1.5f, -2})},
      {2, 3, raw<uint8_t>({0, 7, 255}), 5, v({0, 7, 255})},
      {3, 3, raw<int8_t>({0, -7, 127}), 5, v({0, -7, 127})},
      {4, 2, raw<uint16_t>({1, 65535}), 5, v({1, 65535})},
      {5, 2, raw<int16_t>({-1, 300}), 5, v({-1, 300})},
      {6, 2, raw<int32_t>({-70000, 5}), 5, v({-70000, 5})},
      {7, 2, raw<int64_t>({INT64_MIN, 5}), 7, v({INT64_MIN, 5})},
      {9, 3, raw<uint8_t>({0, 1, 1}), 5, v({0, 1, 1})},
      {10, 2, raw<uint16_t>({0x3c00, 0xbe00}), 5, v({0x3c00, 0xbe00})},
      {11, 2, raw<double>({1e300, -2}), 10, raw<double>({1e300, -2})},
      {12, 2, raw<uint32_t>({1, 4000000000u}), 11, v({1, 4000000000})},
      {13, 2, raw<uint64_t>({1, UINT64_MAX}), 11, v({1, -1})},
      {14, 1, raw<float>({1, 2}), 4, fixed32({1, 2})},
      {15, 1, raw<double>({1, 2}), 10, raw<double>({1, 2})},
      {16, 2, raw<uint16_t>({0x3f80, 0xc000}), 5, v({0x3f80, 0xc000})},
      {17, 2, raw<uint8_t>({0x38, 0xb8}), 5, v({0x38, 0xb8})},
      {18, 2, raw<uint8_t>({0x38, 0xb8}), 5, v({0x38, 0xb8})},
      {19, 2, raw<uint8_t>({0x3c, 0xbc}), 5, v({0x3c, 0xbc})},
      {20, 2, raw<uint8_t>({0x3c, 0xbc}), 5, v({0x3c, 0xbc})},
      {24, 2, raw<uint8_t>({127, 255}), 5, v({127, 255})},
  };
  for (auto& c : cases) {
    auto from_raw = read(raw_tensor("t", c.dtype, {c.count}, c.raw_data));
    auto from_typed = read(tensor_head("t", c.dtype, {c.count}).text(c.field, c.typed));
    ASSERT_TRUE(from_raw.ok()) << c.dtype << from_raw.error().text();
    ASSERT_TRUE(from_typed.ok()) << c.dtype << from_typed.error().text();
    EXPECT_EQ(from_raw->dtype(), static_cast<DType>(c.dtype));
    EXPECT_EQ(raw_of(*from_raw), c.raw_data) << c.dtype;
    EXPECT_EQ(raw_of(*from_typed), c.raw_data) << c.dtype;
    // One element too many, and one too few.
    for (int64_t n : {c.count + 1, c.count - 1}) {
      EXPECT_EQ(read(raw_tensor("t", c.dtype, {n}, c.raw_data)).error().code, code::kParse)
          << c.dtype;
      EXPECT_EQ(read(tensor_head("t", c.dtype, {n}).text(c.field, c.typed)).error().code,
                code::kParse)
          << c.dtype;
    }
  }
}

TEST(ReadTensor, SmallTypesTakeAByteEach) {
  auto bytes = [](const Result<Tensor>& t) {
    EXPECT_TRUE(t.ok());
    std::vector<int> out;
    for (std::byte b : t->raw()) out.push_back(static_cast<int8_t>(b));
    return out;
  };
  using V = std::vector<int>;
  std::string five = raw<uint8_t>({0x8f, 0x71, 0x03});  // f 8 1 7 3
  for (bool typed : {false, true}) {
    auto make = [&](int dtype, int64_t n, std::string s) {
      if (!typed) return read(raw_tensor("t", dtype, {n}, s));
      std::vector<int64_t> v;
      for (char c : s) v.push_back(static_cast<uint8_t>(c));
      return read(tensor_head("t", dtype, {n}).add(5, packed(v)));
    };
    EXPECT_EQ(bytes(make(22, 5, five)), (V{-1, -8, 1, 7, 3}));
    EXPECT_EQ(bytes(make(21, 5, five)), (V{15, 8, 1, 7, 3}));
    EXPECT_EQ(bytes(make(23, 5, five)), (V{15, 8, 1, 7, 3}));
    EXPECT_EQ(bytes(make(26, 5, raw<uint8_t>({0b11100100, 0b10}))), (V{0, 1, -2, -1, -2}));
    EXPECT_EQ(bytes(make(25, 5, raw<uint8_t>({0b11100100, 0b10}))), (V{0, 1, 2, 3, 2}));
    EXPECT_FALSE(make(22, 7, five).ok());
    EXPECT_FALSE(make(22, 4, five).ok());
    EXPECT_FALSE(make(25, 4, raw<uint8_t>({0, 0})).ok());
  }
}

TEST(ReadTensor, BorrowsWhenAligned) {
  int borrowed = 0, copied = 0;
  for (size_t pad = 0; pad < 8; ++pad) {
    // The length of the name moves the data.
    auto m = raw_tensor(std::string(1 + pad, 'n'), 1, {2}, raw<float>({3, 4}));
    auto file = m.file();
    auto proto = parse_tensor(file->bytes());
    ASSERT_TRUE(proto.ok());
    auto t = TensorReader(file, ExternalData()).read(*proto);
    ASSERT_TRUE(t.ok());
    bool aligned = reinterpret_cast<uintptr_t>(proto->raw_data.data()) % 4 == 0;
    EXPECT_EQ(t->data() == proto->raw_data.data(), aligned);
    ++(aligned ? borrowed : copied);
    file.reset();  // a borrowed tensor keeps the file alive
    EXPECT_EQ(t->as<float>()[1], 4);
  }
  EXPECT_EQ(borrowed, 2);
  EXPECT_EQ(copied, 6);
}

TEST(ReadTensor, UnpackedFieldsAndTruthValues) {
  Message m = tensor_head("t", 1, {2});
  m.f32(4, 1).f32(4, 2);
  auto t = read(m);
  ASSERT_TRUE(t.ok()) << t.error().text();
  EXPECT_EQ(t->as<float>()[1], 2);
  m = tensor_head("t", 6, {3});
  m.varint(5, 1).add(5, packed({2, 3}));
  t = read(m);
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->as<int32_t>()[2], 3);
  t = read(raw_tensor("b", 9, {2}, raw<uint8_t>({2, 0})));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->as<uint8_t>()[0], 1);
}

TEST(ReadTensor, ScalarsAndEmptyOnes) {
  auto t = read(raw_tensor("t", 1, {}, raw<float>({3})));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->rank(), 0);
  EXPECT_EQ(t->as<float>()[0], 3);
  EXPECT_TRUE(read(tensor_head("t", 1, {0})).ok());
  EXPECT_TRUE(read(raw_tensor("t", 22, {2, 0}, "")).ok());
  EXPECT_FALSE(read(tensor_head("t", 1, {})).ok());  // a scalar has one element
}

TEST(ReadTensor, Strings) {
  auto t = read(tensor_head("t", 8, {2}).text(6, "a").text(6, ""));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->strings(), (std::vector<std::string>{"a", ""}));
  EXPECT_THAT(read(tensor_head("t", 8, {3}).text(6, "a")).error().message,
              HasSubstr("needs 3 strings, its data have 1"));
  EXPECT_FALSE(read(raw_tensor("t", 8, {1}, "a")).ok());
}

TEST(ReadTensor, RefusesByName) {
  auto message = [](const Message& m) {
    auto r = read(m);
    EXPECT_FALSE(r.ok());
    return r.ok() ? "" : r.error().code + " " + r.error().message;
  };
  // Nothing of this size is ever allocated.
  EXPECT_THAT(
      message(raw_tensor("big", 1, {1000000, 1000000}, raw<float>({0}))),
      HasSubstr(
          "Tensor \"big\" is f32[1000000,1000000] and needs 4000000000000 bytes, its data have 4"));
  EXPECT_THAT(message(raw_tensor("t", 1, {INT64_MAX, INT64_MAX}, "")), HasSubstr("E13023"));
  EXPECT_THAT(message(raw_tensor("t", 1, {INT64_MAX, INT64_MAX, 0}, "")), HasSubstr("E13023"));
  EXPECT_THAT(message(raw_tensor("t", 1, {-1}, "")), HasSubstr("negative dimension: [-1]"));
  EXPECT_THAT(message(raw_tensor("t", 1, std::vector<int64_t>(13, 1), raw<float>({0}))),
              HasSubstr("13 dimensions"));
  EXPECT_THAT(message(raw_tensor("t", 0, {1}, "")), HasSubstr("no element type"));
  EXPECT_THAT(message(raw_tensor("t", 27, {1}, "x")), HasSubstr("6-bit"));
  EXPECT_THAT(message(raw_tensor("t", 99, {1}, "x")), HasSubstr("number 99"));
  EXPECT_THAT(message(raw_tensor("t", -1, {1}, "x")), HasSubstr("number -1"));
  EXPECT_THAT(message(tensor_head("t", 1, {1}).add(3, Message().varint(1, 0))),
              HasSubstr("segments"));
  EXPECT_THAT(message(tensor_head("t", 6, {1}).text(5, std::string(11, '\xff') + '\1')),
              HasSubstr("not valid"));
}

TEST(ReadSparse, BecomesDense) {
  auto sparse = [](const Message& values, const Message& indices,
                   std::vector<int64_t> dims) -> Result<Tensor> {
    Message m = model(graph({.sparse_initializers = {[&] {
                               Message s = Message().add(1, values).add(2, indices);
                               for (int64_t d : dims) s.varint(3, static_cast<uint64_t>(d));
                               return s;
                             }()}}));
    auto file = m.file();
    GE_TRY(auto proto, parse_model(file->bytes()));
    return TensorReader(file, ExternalData()).read(proto.graph.sparse_initializers.at(0));
  };
  Message values = raw_tensor("s", 1, {2}, raw<float>({5, 6}));
  auto t = sparse(values, raw_tensor("", 7, {2}, raw<int64_t>({1, 5})), {2, 3});
  ASSERT_TRUE(t.ok()) << t.error().text();
  EXPECT_EQ(raw_of(*t), raw<float>({0, 5, 0, 0, 0, 6}));
  t = sparse(values, raw_tensor("", 7, {2, 2}, raw<int64_t>({0, 1, 1, 2})), {2, 3});
  ASSERT_TRUE(t.ok()) << t.error().text();
  EXPECT_EQ(raw_of(*t), raw<float>({0, 5, 0, 0, 0, 6}));
  EXPECT_FALSE(sparse(values, raw_tensor("", 7, {2}, raw<int64_t>({1, 6})), {2, 3}).ok());
  EXPECT_FALSE(sparse(values, raw_tensor("", 7, {2}, raw<int64_t>({-1, 5})), {2, 3}).ok());
  EXPECT_FALSE(sparse(values, raw_tensor("", 7, {2, 2}, raw<int64_t>({0, 1, 0, 3})), {2, 3}).ok());
  EXPECT_FALSE(sparse(values, raw_tensor("", 7, {1}, raw<int64_t>({1})), {2, 3}).ok());
  EXPECT_EQ(
      sparse(values, raw_tensor("", 7, {2}, raw<int64_t>({1, 5})), {int64_t{1} << 40}).error().code,
      code::kTooLarge);
}

TEST(Sha1, PublishedVectors) {
  auto sha = [](std::string_view s) {
    return sha1_hex(std::as_bytes(std::span(s.data(), s.size())));
  };
  EXPECT_EQ(sha(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sha(std::string(1000000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

}  // namespace
}  // namespace ge::onnx
