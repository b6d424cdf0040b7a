#include "picture/text_drawing.h"

#include <algorithm>

#include "base/utf8.h"

namespace lockstep::picture {
namespace {

constexpr int kLetterWidth = 5;
constexpr int kAdvance = kLetterWidth + 1;

struct Letter {
  char character;
  std::array<uint8_t, kTextHeight> rows;  ///< the highest of five bits is the left point
};

constexpr Letter kLetters[] = {
    {'0', {0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110}},
    {'1', {0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110}},
    {'2', {0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111}},
    {'3', {0b01110, 0b10001, 0b00001, 0b00110, 0b00001, 0b10001, 0b01110}},
    {'4', {0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010}},
    {'5', {0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110}},
    {'6', {0b01110, 0b10000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110}},
    {'7', {0b11111, 0b00001, 0b00010, 0b00100, 0b00100, 0b01000, 0b01000}},
    {'8', {0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110}},
    {'9', {0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00001, 0b01110}},
    {'A', {0b01110, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001}},
    {'B', {0b11110, 0b10001, 0b10001, 0b11110, 0b10001, 0b10001, 0b11110}},
    {'C', {0b01111, 0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b01111}},
    {'D', {0b11110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b11110}},
    {'E', {0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111}},
    {'F', {0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b10000}},
    {'G', {0b01111, 0b10000, 0b10000, 0b10011, 0b10001, 0b10001, 0b01111}},
    {'H', {0b10001, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001}},
    {'I', {0b01110, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110}},
    {'J', {0b00111, 0b00010, 0b00010, 0b00010, 0b00010, 0b10010, 0b01100}},
    {'K', {0b10001, 0b10010, 0b10100, 0b11000, 0b10100, 0b10010, 0b10001}},
    {'L', {0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b11111}},
    {'M', {0b10001, 0b11011, 0b10101, 0b10101, 0b10001, 0b10001, 0b10001}},
    {'N', {0b10001, 0b11001, 0b10101, 0b10101, 0b10011, 0b10001, 0b10001}},
    {'O', {0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110}},
    {'P', {0b11110, 0b10001, 0b10001, 0b11110, 0b10000, 0b10000, 0b10000}},
    {'Q', {0b01110, 0b10001, 0b10001, 0b10001, 0b10101, 0b10010, 0b01101}},
    {'R', {0b11110, 0b10001, 0b10001, 0b11110, 0b10100, 0b10010, 0b10001}},
    {'S', {0b01111, 0b10000, 0b10000, 0b01110, 0b00001, 0b00001, 0b11110}},
    {'T', {0b11111, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100}},
    {'U', {0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110}},
    {'V', {0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01010, 0b00100}},
    {'W', {0b10001, 0b10001, 0b10001, 0b10101, 0b10101, 0b11011, 0b10001}},
    {'X', {0b10001, 0b10001, 0b01010, 0b00100, 0b01010, 0b10001, 0b10001}},
    {'Y', {0b10001, 0b10001, 0b01010, 0b00100, 0b00100, 0b00100, 0b00100}},
    {'Z', {0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b10000, 0b11111}},
    {' ', {0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000}},
    {'-', {0b00000, 0b00000, 0b00000, 0b01110, 0b00000, 0b00000, 0b00000}},
    {'/', {0b00001, 0b00001, 0b00010, 0b00100, 0b01000, 0b10000, 0b10000}},
    {'.', {0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b01100, 0b01100}},
    {':', {0b00000, 0b01100, 0b01100, 0b00000, 0b01100, 0b01100, 0b00000}},
    {'_', {0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b11111}},
    {'(', {0b00010, 0b00100, 0b01000, 0b01000, 0b01000, 0b00100, 0b00010}},
    {')', {0b01000, 0b00100, 0b00010, 0b00010, 0b00010, 0b00100, 0b01000}},
    {'?', {0b01110, 0b10001, 0b00001, 0b00110, 0b00100, 0b00000, 0b00100}},
};

const Letter& letter_for(char character) {
  const bool small = character >= 'a' && character <= 'z';
  const char wanted = small ? static_cast<char>(character - 'a' + 'A') : character;
  const auto is = [](char c) { return [c](const Letter& letter) { return letter.character == c; }; };
  const auto* found = std::find_if(std::begin(kLetters), std::end(kLetters), is(wanted));
  return found != std::end(kLetters) ? *found : *std::find_if(std::begin(kLetters), std::end(kLetters), is('?'));
}

/// Calls `each` with the first byte of every character and the character's index.
template <class Each>
int for_each_character(std::string_view text, Each each) {
  int count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    const size_t length = std::max<size_t>(base::character_length(text.substr(at)), 1);
    each(text[at], count);
    at += length;
  }
  return count;
}

void fill(Bitmap& bitmap, int left, int top, int side, const Colour& colour) {
  const auto channels = static_cast<size_t>(bitmap.channels);
  const uint8_t* from = channels == 3 ? colour.data() : colour.data() + 1;
  for (int y = std::max(top, 0); y < std::min(top + side, bitmap.height); ++y) {
    for (int x = std::max(left, 0); x < std::min(left + side, bitmap.width); ++x) {
      const size_t pixel = static_cast<size_t>(y) * static_cast<size_t>(bitmap.width) + static_cast<size_t>(x);
      std::copy_n(from, channels, bitmap.pixels.data() + pixel * channels);
    }
  }
}

}  // namespace

int text_width(std::string_view text) {
  const int characters = for_each_character(text, [](char, int) {});
  return characters == 0 ? 0 : characters * kAdvance - 1;
}

void draw_text(Bitmap& bitmap, int left, int top, std::string_view text, const Colour& colour, int scale) {
  for_each_character(text, [&](char character, int place) {
    const Letter& letter = letter_for(character);
    for (int y = 0; y < kTextHeight; ++y) {
      for (int x = 0; x < kLetterWidth; ++x) {
        const bool ink =
            ((letter.rows[static_cast<size_t>(y)] >> static_cast<unsigned>(kLetterWidth - 1 - x)) & 1U) != 0;
        if (ink) fill(bitmap, left + (place * kAdvance + x) * scale, top + y * scale, scale, colour);
      }
    }
  });
}

}  // namespace lockstep::picture
