# Which room may include which, and inside a room which folder which:
# cli -> {fuzz -> verify, picture} -> runtime -> {generator, cache} -> base; c -> what is installed of them.
# No chain of includes inside one folder is longer than 8 files.
# Run as a test: cmake -DROOT=... -P tests/rooms.cmake
cmake_minimum_required(VERSION 3.25)

include(${ROOT}/cmake/PublicHeaders.cmake)

set(rooms base cache generator runtime c picture verify fuzz cli)
set(allowed_base base)
set(allowed_cache base cache)
set(allowed_generator base generator)
set(allowed_runtime base cache generator runtime templates)
set(allowed_c base cache generator runtime c tilewright.hpp)
set(allowed_picture base cache generator runtime picture)
set(allowed_verify base cache generator runtime verify templates)
set(allowed_fuzz base cache generator runtime verify fuzz templates)
set(allowed_cli base cache generator runtime picture verify fuzz cli)

# Folders that must not know one another, as "from>to".
set(forbidden
  runtime/cpu>runtime/cuda runtime/cuda>runtime/cpu
  runtime/io>runtime/call runtime/io>runtime/library runtime/io>runtime/compile
  runtime/call>runtime/cpu runtime/call>runtime/library runtime/call>runtime/compile
  runtime/library>runtime/call runtime/library>runtime/cpu runtime/library>runtime/cuda
  runtime/compile>runtime/call runtime/compile>runtime/cpu
  generator/spec>generator/tactic generator/spec>generator/render
  generator/snippet>generator/tactic generator/snippet>generator/render
  generator/messages>generator/spec generator/messages>generator/tactic
  generator/render/engine>generator/spec generator/render/engine>generator/snippet
  generator/render/engine>generator/tactic generator/render/engine>generator/messages
  cli>cli/bench)
# One file each that joins what is apart.
set(excepted "cli/main.cpp>cli/bench")
set(longest_chain 8)

set(files)
foreach(room IN LISTS rooms)
  file(GLOB_RECURSE found RELATIVE ${ROOT} ${ROOT}/${room}/*.hpp ${ROOT}/${room}/*.cpp)
  list(APPEND files ${found})
endforeach()

set(includes 0)
foreach(file IN LISTS files)
  cmake_path(GET file PARENT_PATH folder)
  string(REGEX REPLACE "/.*" "" room "${file}")
  file(STRINGS ${ROOT}/${file} lines REGEX "^#include \"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" path "${line}")
    # A header's path is relative to its own folder, a source's to the root.
    if(EXISTS ${ROOT}/${folder}/${path})
      set(path ${folder}/${path})
      cmake_path(NORMAL_PATH path)
    endif()
    cmake_path(GET path PARENT_PATH target_folder)
    string(REGEX REPLACE "/.*" "" target "${path}")
    math(EXPR includes "${includes} + 1")
    if(NOT target IN_LIST allowed_${room})
      message(SEND_ERROR "${file}: ${room}/ must not include ${path}")
    elseif("${folder}>${target_folder}" IN_LIST forbidden AND NOT "${file}>${target_folder}" IN_LIST excepted)
      message(SEND_ERROR "${file}: ${folder}/ must not include ${path}")
    elseif(room STREQUAL "c" AND NOT target STREQUAL "c" AND NOT path IN_LIST TILEWRIGHT_PUBLIC_HEADERS)
      message(SEND_ERROR "${file}: c/ includes ${path}, which is not installed")
    endif()
    if(folder STREQUAL target_folder)
      list(APPEND within_${file} ${path})
    endif()
  endforeach()
endforeach()

# How many files of its folder a file includes one through the other, itself among them.
function(measure_chain file)
  get_property(known GLOBAL PROPERTY chain_${file})
  if(known)
    return()
  endif()
  set(chain 1)
  foreach(included IN LISTS within_${file})
    measure_chain(${included})
    get_property(length GLOBAL PROPERTY chain_${included})
    math(EXPR length "${length} + 1")
    if(length GREATER chain)
      set(chain ${length})
    endif()
  endforeach()
  set_property(GLOBAL PROPERTY chain_${file} ${chain})
endfunction()

foreach(file IN LISTS files)
  measure_chain(${file})
  get_property(chain GLOBAL PROPERTY chain_${file})
  if(chain GREATER longest_chain)
    message(SEND_ERROR "${file}: ${chain} files of its folder include one another in a chain; "
      "at most ${longest_chain} may")
  endif()
endforeach()

message(STATUS "${includes} includes between rooms and folders")
if(includes EQUAL 0)
  message(SEND_ERROR "no include was read: the test looks in the wrong place")
endif()
