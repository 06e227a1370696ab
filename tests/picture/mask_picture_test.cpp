#include "picture/mask_picture.hpp"

#include <cstdlib>

#include <png.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "tests/picture/masks.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::picture;
using Catch::Matchers::ContainsSubstring;

namespace {

// Goldens were looked at in a browser before they were committed. With TILEWRIGHT_UPDATE_GOLDENS=1
// the test writes them anew; look at them again.
void require_golden(const std::string& name, const std::string& drawn) {
  const std::string path =
      std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/picture/goldens/" + name + ".svg";
  if (std::getenv("TILEWRIGHT_UPDATE_GOLDENS")) write_text_file(path, drawn);
  CHECK(read_text_file(path) == drawn);
}

void read_causal(ListIndex list, std::int64_t q_row, ElementRow& row) {
  row.scores.clear();
  row.keep.clear();
  for (std::int64_t kv = 0; kv < 40; ++kv) {
    row.scores.push_back(static_cast<float>((kv - q_row) * (list.h + 1)));
    row.keep.push_back(q_row >= kv);
  }
}

struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;

  Color at(std::int64_t x, std::int64_t y) const {
    const std::uint8_t* pixel = &pixels[static_cast<std::size_t>((y * width + x) * 3)];
    return {pixel[0], pixel[1], pixel[2]};
  }
  std::int64_t count(Color color) const {
    std::int64_t found = 0;
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) found += at(x, y) == color;
    }
    return found;
  }
};

Image decoded(const std::vector<std::byte>& file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&image, file.data(), file.size()) != 0);
  image.format = PNG_FORMAT_RGB;
  Image result{.width = image.width, .height = image.height, .pixels = {}};
  result.pixels.resize(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, result.pixels.data(), 0, nullptr) != 0);
  return result;
}

// The corner of the first plot: where its frame begins, found by its colour.
std::pair<std::int64_t, std::int64_t> plot_corner(const Image& image) {
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x + 60 < image.width; ++x) {
      bool is_frame = true;
      for (std::int64_t i = 0; i < 60 && is_frame; ++i) is_frame = image.at(x + i, y) == kLine;
      // The mark of row 0 stands before it: 4 units of 2 pixels.
      if (is_frame) return {x + 8, y};
    }
  }
  FAIL("no frame was drawn");
  return {};
}

}  // namespace

TEST_CASE("mask picture: small drawings are what they were when they were looked at") {
  require_golden("causal", svg_picture(test::causal_mask(500, 128), {.title = "causal"}));
  require_golden("heads", svg_picture(test::causal_mask(64, 32, 2), {.title = "two heads"}));
  require_golden("elements", svg_picture(test::causal_mask(40, 16), {.title = "elements & scores",
                                                                     .read = read_causal,
                                                                     .elements = true,
                                                                     .scores = true,
                                                                     .heads = 1}));
}

TEST_CASE("mask picture: a PNG has each tile's colour in its place") {
  const Image image = decoded(png_picture(test::causal_mask(512, 128)));
  const auto [left, top] = plot_corner(image);
  const std::int64_t tile = 240;  // pixels: 4 tiles of 120 units, 2 pixels each
  for (std::int64_t q = 0; q < 4; ++q) {
    for (std::int64_t kv = 0; kv < 4; ++kv) {
      const Color wanted = q > kv ? kFull : q == kv ? kPartial : kEmpty;
      CHECK(image.at(left + kv * tile + tile / 2, top + q * tile + tile / 2) == wanted);
      CHECK(image.at(left + kv * tile + 6, top + q * tile + 6) == wanted);
    }
  }
}

TEST_CASE("mask picture: words are drawn, with letters that no font has as well") {
  const BlockMask mask = test::causal_mask(32, 16);
  const Image plain = decoded(png_picture(mask, {.title = " "}));
  const Image titled =
      decoded(png_picture(mask, {.title = "Maske \xC3\xA4 \xFF \xF0\x9F\x98\x80"}));
  CHECK(plain.count(kInk) > 50);
  CHECK(titled.count(kInk) > plain.count(kInk) + 50);
}

TEST_CASE("mask picture: large masks stay small") {
  const BlockMask mask = test::causal_mask(128 * 1024, 128);
  const std::string svg = svg_picture(mask);
  CHECK(svg.size() < 100'000);
  CHECK_THAT(svg, ContainsSubstring("A cell is 4 x 4 tiles"));
  CHECK_THAT(svg, ContainsSubstring(">128k</text>"));
  const Image image = decoded(png_picture(mask));
  CHECK(image.width < 1600);
  CHECK(image.count(kFull) > image.width * image.height / 5);
}

TEST_CASE("mask picture: one row over many columns is still a picture") {
  const BlockMask mask = test::make_mask(
      {.q_len = 1, .kv_len = 100'000, .q_offset = 99'999}, {128, 128},
      [](std::int64_t, std::int64_t, std::int64_t) { return BlockMask::Tile::full; });
  const Image image = decoded(png_picture(mask));
  CHECK(image.height > 200);
  CHECK(image.count(kFull) > 10'000);
  CHECK_THAT(svg_picture(mask), ContainsSubstring(">99999</text>"));
}

TEST_CASE(
    "mask picture: lists stand beside each other, are chosen, and counted where they do not fit") {
  const BlockMask mask = test::causal_mask(64, 32, 20);
  const std::string all = svg_picture(mask);
  CHECK_THAT(all, ContainsSubstring(">head 15: 75.0 %</text>"));
  CHECK(all.find(">head 16") == std::string::npos);
  CHECK_THAT(all, ContainsSubstring("4 more are not drawn; choose with --b and --h."));
  const std::string one = svg_picture(mask, {.h = 17});
  CHECK(one.find("more are not drawn") == std::string::npos);
  CHECK(one.size() < all.size() / 4);
  try {
    svg_picture(mask, {.h = 20});
    FAIL("a head that is not there was drawn");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK_THAT(error.what(), ContainsSubstring("no head 20 in the mask: it has 0 to 19"));
  }
}

TEST_CASE("mask picture: scores tell heads apart that share a list, on one scale") {
  const std::string svg = svg_picture(
      test::causal_mask(40, 16), {.read = read_causal, .scores = true, .score = 0.5, .heads = 3});
  CHECK_THAT(svg, ContainsSubstring(">head 2: "));
  CHECK_THAT(svg, ContainsSubstring(">score_mod of 0.5; grey: dropped</text>"));
  CHECK_THAT(svg, ContainsSubstring(">-117</text>"));
  const ReadElements nothing = [](ListIndex, std::int64_t, ElementRow& row) {
    row.scores.assign(40, 1);
    row.keep.assign(40, 0);
  };
  const BlockMask partial = test::make_mask(
      {.q_len = 40, .kv_len = 40}, {16, 16},
      [](std::int64_t, std::int64_t, std::int64_t) { return BlockMask::Tile::partial; });
  CHECK_THAT(svg_picture(partial, {.read = nothing, .scores = true}),
             ContainsSubstring("no element is kept"));
}

TEST_CASE("mask picture: a name is text, whatever it holds") {
  const std::string svg =
      svg_picture(test::causal_mask(32, 16), {.title = "a<b> & \"c\"\n" + std::string(100, 'x')});
  CHECK_THAT(svg, ContainsSubstring("<title>a&lt;b&gt; &amp; \"c\" xxx"));
  CHECK_THAT(svg, ContainsSubstring("xxx...</text>"));
}
