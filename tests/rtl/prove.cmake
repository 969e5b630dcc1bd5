# Has Yosys prove what decoders_proof asserts of the modules SOURCES. With REFUTE it must find that it does not hold.
string(REPLACE ";" " " SOURCES "${SOURCES}")
execute_process(
  COMMAND ${YOSYS} -q -p "read_verilog -formal -sv ${SOURCES}; hierarchy -check -top decoders_proof; proc -norom; flatten; opt;
                          tee -o /dev/stdout sat -prove-asserts -verify -show-inputs"
  OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE status)
message("${said}")
if(REFUTE)
  if(NOT said MATCHES "SAT proof finished - model found: FAIL!")
    message(FATAL_ERROR "Yosys did not refute the decoders with a planted bug")
  endif()
elseif(NOT status EQUAL 0 OR NOT said MATCHES "SAT proof finished - no model found: SUCCESS!")
  message(FATAL_ERROR "Yosys did not prove the decoders")
endif()
