# Writes a CTest file with one entry for each suite of a GoogleTest program, so that what a suite loads is loaded once.
# Suites named in SHARDS, a list of NAME=COUNT, get COUNT entries that share their tests. Suites whose names begin with
# "Public" need the data that VERBATIM_TEST_DATA names and are labelled "public".
#
# LAUNCHER is the program, with its arguments, that runs programs of another machine, as QEMU does.
#
# cmake -D PROGRAM=path -D NAME=layer_tests -D LABEL=label -D SHARDS="Suite=4,..." -D LAUNCHER="program,argument,..."
#   -D OUTPUT=file -P register_suites.cmake
string(REPLACE "," ";" launcher "${LAUNCHER}")
set(launched_by "")
foreach(word IN LISTS launcher)
  string(APPEND launched_by "[=[${word}]=] ")
endforeach()
execute_process(COMMAND ${launcher} ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listing RESULT_VARIABLE status
                ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} cannot list its tests:\n${errors}")
endif()

function(add_entry name suite environment label)
  string(APPEND entries "add_test([=[${name}]=] ${launched_by}[=[${PROGRAM}]=] [=[--gtest_filter=${suite}.*]=])\n"
         "set_tests_properties([=[${name}]=] PROPERTIES TIMEOUT 1800 LABELS [=[${label}]=]${environment})\n")
  set(entries "${entries}" PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" shards "${SHARDS}")
string(REGEX MATCHALL "(^|\n)[^ \n][^\n]*\\." suites "${listing}")
set(entries "")
foreach(suite IN LISTS suites)
  string(STRIP "${suite}" suite)
  string(REGEX REPLACE "\\.$" "" suite "${suite}")
  if(suite MATCHES "^(Running|Note)")
    continue()
  endif()
  set(label ${LABEL})
  if(suite MATCHES "^Public")
    set(label public)
  endif()
  set(count 1)
  foreach(shard IN LISTS shards)
    if(shard MATCHES "^${suite}=([0-9]+)$")
      set(count ${CMAKE_MATCH_1})
    endif()
  endforeach()
  if(count EQUAL 1)
    add_entry(${NAME}.${suite} ${suite} "" ${label})
  else()
    math(EXPR last "${count} - 1")
    foreach(index RANGE ${last})
      math(EXPR number "${index} + 1")
      add_entry(${NAME}.${suite}.${number}_of_${count} ${suite}
        " ENVIRONMENT \"GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${index}\"" ${label})
    endforeach()
  endif()
endforeach()
file(WRITE ${OUTPUT} "${entries}")
