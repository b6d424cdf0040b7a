# lockstep_embed(OUTPUT file.cpp NAMESPACE a::b ASSETS name=file[+file...]...): generates a source that contains the
# text of files, concatenated for each name, and a function `const char* embedded(std::string_view name)` (nullptr for
# other names). A change of a file regenerates it.
if(CMAKE_SCRIPT_MODE_FILE)
  set(source "#include <string_view>\n\nnamespace ${NAMESPACE} {\n\nconst char* embedded(std::string_view name);\n\n")
  string(APPEND source "const char* embedded(std::string_view name) {\n")
  string(REPLACE "|" ";" assets "${ASSETS}")
  foreach(asset ${assets})
    string(REGEX MATCH "^([^=]+)=(.+)$" whole "${asset}")
    set(name "${CMAKE_MATCH_1}")
    string(REPLACE "+" ";" files "${CMAKE_MATCH_2}")
    string(APPEND source "  if (name == \"${name}\") {\n    return")
    foreach(file ${files})
      file(READ "${FOLDER}/${file}" text)
      string(FIND "${text}" ")embedded\"" ends)
      if(NOT ends EQUAL -1)
        message(FATAL_ERROR "${file} has the end of a raw string in it")
      endif()
      string(APPEND source " R\"embedded(${text})embedded\"")
    endforeach()
    string(APPEND source ";\n  }\n")
  endforeach()
  string(APPEND source "  return nullptr;\n}\n\n}  // namespace ${NAMESPACE}\n")
  file(WRITE "${OUTPUT}" "${source}")
  return()
endif()

set(LOCKSTEP_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(lockstep_embed)
  cmake_parse_arguments(EMBED "" "OUTPUT;NAMESPACE;FOLDER" "ASSETS" ${ARGN})
  set(files)
  foreach(asset ${EMBED_ASSETS})
    string(REGEX REPLACE "^[^=]+=" "" parts "${asset}")
    string(REPLACE "+" ";" parts "${parts}")
    list(TRANSFORM parts PREPEND "${EMBED_FOLDER}/")
    list(APPEND files ${parts})
  endforeach()
  list(JOIN EMBED_ASSETS "|" assets)
  add_custom_command(OUTPUT ${EMBED_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${EMBED_OUTPUT} -DNAMESPACE=${EMBED_NAMESPACE} -DFOLDER=${EMBED_FOLDER} "-DASSETS=${assets}"
            -P ${LOCKSTEP_EMBED_SCRIPT}
    DEPENDS ${files} ${LOCKSTEP_EMBED_SCRIPT} VERBATIM)
endfunction()
