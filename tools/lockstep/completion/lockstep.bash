# Completion of lockstep for bash. The program itself answers, so this never goes out of date.
_lockstep() {
  local line=${COMP_LINE:0:COMP_POINT} words=() blank token cut answer text i
  # bash cuts words at "=", ":" and others; the line tells which pieces belong together.
  for ((i = 0; i < COMP_CWORD; ++i)); do
    token=${COMP_WORDS[i]}
    blank=${line%%[![:blank:]]*}
    line=${line#"$blank"}
    line=${line#"$token"}
    if [[ -n $blank || $i -eq 0 ]]; then words+=("$token"); else words[-1]+=$token; fi
  done
  blank=${line%%[![:blank:]]*}
  if [[ -n $blank ]]; then words+=("${line#"$blank"}"); else words[-1]+=$line; fi
  words=("${words[@]//[\\\"\']/}")

  mapfile -t answer < <("${words[0]/#\~/$HOME}" --complete "${words[@]:1}" 2> /dev/null)
  # bash replaces only the piece behind its last cut.
  cut=${words[-1]}
  if [[ $COMP_WORDBREAKS == *=* && $cut == *[=:\<\>]* ]]; then cut=${cut%"${cut##*[=:<>]}"}; else cut=; fi
  COMPREPLY=()
  for text in "${answer[@]:1}"; do
    text=${text%%$'\t'*}
    text=${text#"$cut"}
    [[ $text != *[[:space:]\;\&\(\)\$\'\"]* ]] || printf -v text %q "$text"
    COMPREPLY+=("$text")
  done
  case ${answer[0]} in
    files) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${words[-1]#"$cut"}") ;;
    folders) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "${words[-1]#"$cut"}") ;;
  esac
  [[ ${answer[0]} == none ]] || compopt -o filenames 2> /dev/null
  [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2> /dev/null
}
complete -F _lockstep lockstep
