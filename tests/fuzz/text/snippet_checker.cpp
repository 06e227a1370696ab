// Snippets: what passes the checks lies whole between the lines that are put around it.

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/snippet/splice.hpp"
#include "tests/fuzz/text/input.hpp"

using namespace tilewright;

namespace {

void check_tokens(std::string_view text, const std::vector<SnippetToken>& tokens) {
  std::size_t end = 0;
  int depth = 0;
  for (const SnippetToken& token : tokens) {
    fuzz::require(!token.text.empty() && token.offset >= end &&
                      text.substr(token.offset, token.text.size()) == token.text,
                  "tokens stand where they say, one after the other");
    end = token.offset + token.text.size();
    fuzz::require(token.text != "#" && token.text != "##" && token.text != "\\",
                  "nothing of the preprocessor passes");
    if (token.kind != SnippetToken::Kind::punctuation) continue;
    if (token.text == "(" || token.text == "[" || token.text == "{") ++depth;
    if (token.text == ")" || token.text == "]" || token.text == "}") --depth;
    fuzz::require(depth >= 0, "no bracket closes what it did not open");
  }
  fuzz::require(depth == 0, "all brackets are closed");
}

void check_splice(const Snippet& snippet) {
  std::string spliced;
  for (const jinja::Splice::Piece& piece : splice_snippet(snippet, LiteralType::f32).pieces) {
    spliced += piece.text;
  }
  // A literal may get a suffix, so the texts are compared without what could be one.
  const auto bare = [](std::string text) {
    std::erase_if(text, [](char c) { return c == 'f' || c == ' ' || c == '\n'; });
    return text;
  };
  fuzz::require(bare(spliced).find(bare(snippet.text)) != std::string::npos,
                "the snippet is spliced whole");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  for (const SnippetKind kind : {SnippetKind::score_mod, SnippetKind::mask_mod}) {
    try {
      const Snippet snippet = check_snippet(kind, text);
      check_tokens(text, tokenize(text, kind));
      check_splice(snippet);
      const Snippet again = check_snippet(kind, snippet.text);
      fuzz::require(again.text == snippet.text && again.names == snippet.names,
                    "what passed the checks passes them again");
    } catch (const Error& error) {
      fuzz::require(error.code() == ErrorCode::snippet && error.place(),
                    "what is refused is an error with its place");
    }
  }
  return 0;
}
