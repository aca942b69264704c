# Writes the checkout's commit to OUT as a macro, if it is not there already: a script of every build (src/cli).
#   cmake -DROOT=CHECKOUT -DOUT=FILE -P cmake/BuildCommit.cmake
execute_process(COMMAND git -C ${ROOT} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
# Sources that were unpacked inside of another repository are not its commit.
execute_process(COMMAND git -C ${ROOT} rev-parse --show-prefix OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(failed OR prefix)
  set(commit unknown)
else()
  execute_process(COMMAND git -C ${ROOT} diff --quiet HEAD RESULT_VARIABLE changed ERROR_QUIET)
  if(changed)
    string(APPEND commit "+changes")
  endif()
endif()
set(text "#define DOPPLER_COMMIT \"${commit}\"\n")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUT} "${text}")
endif()
