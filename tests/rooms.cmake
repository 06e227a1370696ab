# Which room may include which, and inside a room which folder which:
# cli -> {fuzz -> verify, picture} -> runtime -> {generator, cache} -> base; c -> what is installed of them.
# No chain of includes inside one folder is longer than 8 files.
# A constant or an alias of one source has no other meaning in another source of its target, and no local constant
# there has its name: a unity build joins any of them, and a compiler may find a shadow.
# The template engine stays small: at most 2,500 lines.
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
set(most_engine_lines 2500)
set(target_cli cli)
set(target_picture picture)
foreach(room IN ITEMS base cache generator runtime c)
  set(target_${room} library)
endforeach()
foreach(room IN ITEMS verify fuzz)
  set(target_${room} verify)
endforeach()

set(files)
foreach(room IN LISTS rooms)
  file(GLOB_RECURSE found RELATIVE ${ROOT} ${ROOT}/${room}/*.hpp ${ROOT}/${room}/*.cpp)
  list(APPEND files ${found})
endforeach()

set(includes 0)
set(constants 0)
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

# Adds a file to those that give a name its meaning, in the file itself or in one of its functions.
function(note_name target name meaning file)
  set_property(GLOBAL APPEND PROPERTY names_${target} ${name})
  set_property(GLOBAL APPEND PROPERTY users_${target}_${name} ${file})
  set_property(GLOBAL APPEND PROPERTY meanings_${target}_${name} "${meaning}")
endfunction()

foreach(file IN LISTS files)
  if(NOT file MATCHES "\\.cpp$")
    continue()
  endif()
  string(REGEX REPLACE "/.*" "" room "${file}")
  set(target ${target_${room}})
  file(STRINGS ${ROOT}/${file} lines REGEX "^ *(static |inline )?constexpr [^(;]*[ ]k[A-Z][A-Za-z0-9]*[ ={[]")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^( *)(static |inline )?constexpr [^=({]*[ ](k[A-Z][A-Za-z0-9]*).*" "\\1;\\3" found "${line}")
    list(GET found 0 indent)
    list(GET found 1 name)
    if(indent STREQUAL "")
      note_name(${target} ${name} ${file} ${file})
      math(EXPR constants "${constants} + 1")
    else()
      set_property(GLOBAL APPEND PROPERTY locals_${target}_${name} ${file})
    endif()
  endforeach()
  file(STRINGS ${ROOT}/${file} lines REGEX "^using [A-Za-z0-9]+ = .*;")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^using ([A-Za-z0-9]+) = ([^;]*);.*" "\\1" name "${line}")
    string(REGEX REPLACE "^using ([A-Za-z0-9]+) = ([^;]*);.*" "\\2" meaning "${line}")
    note_name(${target} ${name} "${meaning}" ${file})
  endforeach()
endforeach()
foreach(target IN ITEMS library verify picture cli)
  get_property(names GLOBAL PROPERTY names_${target})
  list(REMOVE_DUPLICATES names)
  foreach(name IN LISTS names)
    get_property(users GLOBAL PROPERTY users_${target}_${name})
    get_property(meanings GLOBAL PROPERTY meanings_${target}_${name})
    get_property(locals GLOBAL PROPERTY locals_${target}_${name})
    list(REMOVE_ITEM locals ${users})
    list(APPEND meanings ${locals})
    list(REMOVE_DUPLICATES meanings)
    list(LENGTH meanings count)
    if(count GREATER 1)
      message(SEND_ERROR "${users};${locals}: each has a ${name} of its own; a unity build may join them, so give them "
        "other names")
    endif()
  endforeach()
endforeach()
message(STATUS "${constants} constants of sources")
if(constants EQUAL 0)
  message(SEND_ERROR "no constant was read: the test looks in the wrong place")
endif()

message(STATUS "${includes} includes between rooms and folders")
if(includes EQUAL 0)
  message(SEND_ERROR "no include was read: the test looks in the wrong place")
endif()

file(GLOB engine ${ROOT}/generator/render/engine/*)
set(engine_lines 0)
foreach(file IN LISTS engine)
  file(READ ${file} text)
  string(REGEX MATCHALL "\n" ends "${text}")
  list(LENGTH ends count)
  math(EXPR engine_lines "${engine_lines} + ${count}")
endforeach()
message(STATUS "${engine_lines} lines of the template engine")
if(engine_lines EQUAL 0)
  message(SEND_ERROR "no line of the template engine was read: the test looks in the wrong place")
elseif(engine_lines GREATER most_engine_lines)
  message(SEND_ERROR "generator/render/engine has ${engine_lines} lines, more than ${most_engine_lines}: templates need "
    "a small part of Jinja; leave out what they do not use")
endif()
