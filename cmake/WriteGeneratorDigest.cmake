# Called by EmbedTemplates.cmake: -DROOT=folder -DFILES=list -DOUTPUT=file.
set(digests "")
foreach(name IN LISTS FILES)
  file(SHA256 ${ROOT}/${name} digest)
  string(APPEND digests "${name} ${digest}\n")
endforeach()
string(SHA256 digest "${digests}")
file(WRITE ${OUTPUT}.new "// Written by cmake/WriteGeneratorDigest.cmake.
#include \"generator/render/generator_digest.hpp\"

namespace tilewright {

std::string_view generator_digest() {
  return \"${digest}\";
}

}  // namespace tilewright
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
