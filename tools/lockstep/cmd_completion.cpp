// lockstep completion: the scripts that let shells complete commands.
#include <memory>
#include <string>
#include <string_view>

#include "command.h"
#include "command_line.h"
#include "lockstep/error.h"
#include "terminal/output.h"
#include "terminal/text.h"

namespace lockstep::tools {

const char* embedded(std::string_view name);

namespace {

int print_script(const std::string& shell, const std::string& program) {
  const char* script = embedded(shell);
  if (script == nullptr) throw UsageError("completion: '" + shell + "' is not allowed; it takes bash, zsh or fish");
  terminal::write_out(terminal::replaced(script, "lockstep", program));
  return 0;
}

}  // namespace

void add_completion(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("completion", "Print a script that lets your shell complete commands");
  const auto shell = std::make_shared<std::string>();
  app.add_option("bash|zsh|fish", *shell, "Your shell").required();
  app.footer(
      "`cmake --install` puts the scripts where shells look for them. Without it, add the line to your shell's start "
      "file.\n\n"
      "Examples:\n"
      "  eval \"$(lockstep completion bash)\"        in ~/.bashrc\n"
      "  eval \"$(lockstep completion zsh)\"         in ~/.zshrc, after compinit\n"
      "  lockstep completion fish | source         in ~/.config/fish/config.fish");
  app.callback([shell, &invocation] {
    invocation.run = [shell, &invocation] { return print_script(*shell, invocation.program); };
  });
}

}  // namespace lockstep::tools
