# Completion of lockstep for fish. The program itself answers, so this never goes out of date.
function __lockstep_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer ($words[1] --complete $words[2..-1] "$current" 2> /dev/null)
    printf '%s\n' $answer[2..-1]
    switch "$answer[1]"
        case files
            __fish_complete_path "$current"
        case folders
            __fish_complete_directories "$current"
    end
end
complete -c lockstep -f -a '(__lockstep_complete)'
