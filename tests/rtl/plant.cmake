# Writes OUTPUT: INPUT with the text TO in place of FROM, which must be there exactly once.
file(READ ${INPUT} text)
string(FIND "${text}" "${FROM}" first)
string(FIND "${text}" "${FROM}" last REVERSE)
if(first EQUAL -1 OR NOT first EQUAL last)
  message(FATAL_ERROR "${INPUT} must hold \"${FROM}\" once, so that a bug can be planted there")
endif()
string(REPLACE "${FROM}" "${TO}" text "${text}")
file(WRITE ${OUTPUT} "${text}")
