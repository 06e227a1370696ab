# Puts the font of PNG pictures into a library, so that a user ships one file. Where the distribution
# keeps it elsewhere: -DTILEWRIGHT_FONT=/path/to/DejaVuSans.ttf
find_file(TILEWRIGHT_FONT DejaVuSans.ttf
  PATHS /usr/share/fonts PATH_SUFFIXES truetype/dejavu dejavu dejavu-sans-fonts TTF
  DOC "The font of PNG pictures" NO_DEFAULT_PATH)

function(tilewright_embed_font target)
  if(NOT TILEWRIGHT_FONT)
    message(FATAL_ERROR
      "DejaVuSans.ttf was not found: install fonts-dejavu-core, or set TILEWRIGHT_FONT to the file")
  endif()
  set(source ${PROJECT_BINARY_DIR}/embedded_font.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [=[
asm(".section .rodata\n"
    ".balign 16\n"
    ".globl tilewright_font\n"
    "tilewright_font:\n"
    ".incbin \"@TILEWRIGHT_FONT@\"\n"
    ".globl tilewright_font_end\n"
    "tilewright_font_end:\n"
    ".byte 0\n"
    ".text\n");
]=])
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${TILEWRIGHT_FONT})
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
endfunction()
