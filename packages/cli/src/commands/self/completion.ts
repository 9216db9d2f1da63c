/** rackwright completion bash, zsh, fish: scripts by which a shell completes commands and names. */
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext } from '../../command-io.ts';

/** Each asks `rackwright __complete WORD…` for lines of "proposal<TAB>what it is". */
export const completionScripts = {
  bash: `# Bash completion of the command: source it, or install it as
# /usr/share/bash-completion/completions/rackwright.
_rackwright() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("\${line%%$'\\t'*}")
    done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _rackwright rackwright
`,
  zsh: `#compdef rackwright
# Zsh completion of the command: source it after compinit, or install it as _rackwright in a
# folder of $fpath.
_rackwright() {
    local value brief
    local -a proposals
    while IFS=$'\\t' read -r value brief; do
        proposals+=("\${value//:/\\\\:}:\${brief}")
    done < <("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( \${#proposals} )); then
        _describe 'rackwright' proposals
    else
        _files
    fi
}
if [ "$funcstack[1]" = _rackwright ]; then
    _rackwright
else
    compdef _rackwright rackwright
fi
`,
  fish: `# Fish completion of the command: source it, or install it as
# ~/.config/fish/completions/rackwright.fish.
function __rackwright_complete
    set -l words (commandline -opc) (commandline -ct)
    command $words[1] __complete $words[2..-1] 2>/dev/null
end
complete -c rackwright -f -a '(__rackwright_complete)'
`,
} as const;

function scriptCommand(shell: keyof typeof completionScripts, how: string) {
  return buildCommand({
    docs: { brief: `For ${shell}: ${how}` },
    parameters: {},
    func(this: CliContext) {
      this.io.out.write(completionScripts[shell]);
    },
  });
}

/** `completion …` */
export const completionRoutes = buildRouteMap({
  routes: {
    bash: scriptCommand('bash', 'eval "$(rackwright completion bash)"'),
    zsh: scriptCommand('zsh', 'source <(rackwright completion zsh)'),
    fish: scriptCommand('fish', '(rackwright completion fish) | source'),
  },
  docs: { brief: briefs.completion },
});
