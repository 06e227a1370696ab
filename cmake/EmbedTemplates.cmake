# Turns every file under templates/ into an entry of generator/render/embedded_templates.hpp, so that a user
# ships one library. Each file becomes an array of bytes: compilers limit
# the length of string literals.
function(tilewright_embed_templates target)
  file(GLOB_RECURSE templates CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/templates
    ${PROJECT_SOURCE_DIR}/templates/*.jinja ${PROJECT_SOURCE_DIR}/templates/*.hpp)
  list(SORT templates)
  set(output ${PROJECT_BINARY_DIR}/embedded_templates.cpp)
  list(TRANSFORM templates PREPEND ${PROJECT_SOURCE_DIR}/templates/ OUTPUT_VARIABLE paths)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/templates "-DFILES=${templates}"
            -DOUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/cmake/WriteEmbeddedTemplates.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/WriteEmbeddedTemplates.cmake
    VERBATIM COMMENT "Embedding templates")
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${output})

  # Also embedded: a digest of all that decides what is rendered.
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/generator/*.cpp ${PROJECT_SOURCE_DIR}/generator/*.hpp)
  set(files ${templates})
  list(TRANSFORM files PREPEND templates/)
  list(APPEND files ${sources})
  list(SORT files)
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
  set(output ${PROJECT_BINARY_DIR}/generator_digest.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} "-DFILES=${files}" -DOUTPUT=${output}
            -P ${PROJECT_SOURCE_DIR}/cmake/WriteGeneratorDigest.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${output}
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/WriteGeneratorDigest.cmake
    VERBATIM COMMENT "Digest of the generator")
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${output})
endfunction()
