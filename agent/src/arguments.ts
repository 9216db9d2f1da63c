/** The agent's command line. Pure. */
export type AgentCommand =
  | {
      readonly kind: 'join';
      readonly address: string;
      readonly token: string;
      readonly newKey: boolean;
      readonly config: string;
    }
  | { readonly kind: 'run'; readonly config: string }
  | { readonly kind: 'checkConfig'; readonly config: string }
  | { readonly kind: 'nginx'; readonly config: string }
  | { readonly kind: 'help'; readonly problem?: string };

const defaultConfig = '/etc/rackwright/agent.yaml';

export const usage = `rackwright-agent: the agent on a rack's provisioning network

  join ADDRESS TOKEN   make this agent the rack's; ADDRESS is the control plane's host:port,
                       TOKEN the join token, or - to read it from standard input
    --new-key          with a key made anew: for an agent whose key was revoked or replaced
  run                  serve the rack
  nginx                print a site for nginx that serves the files of boots at http.filesPort
  --check-config       say what is wrong with the configuration, as FILE:LINE: KEY …, and end:
                       0 nothing is, 2 something is

  --config FILE        YAML or JSON; ${defaultConfig} unless given
`;

/** Reads the words after the program's name. */
export function parseArguments(args: readonly string[]): AgentCommand {
  const rest: string[] = [];
  let config = defaultConfig;
  let checks = false;
  let newKey = false;
  for (let index = 0; index < args.length; index += 1) {
    const word = args[index] ?? '';
    if (word === '--help' || word === '-h') return { kind: 'help' };
    if (word === '--config') {
      index += 1;
      const file = args[index];
      if (file === undefined) return { kind: 'help', problem: '--config needs a file' };
      config = file;
    } else if (word === '--check-config') checks = true;
    else if (word === '--new-key') newKey = true;
    else if (word.startsWith('--')) {
      return { kind: 'help', problem: `${word} is no option` };
    } else rest.push(word);
  }
  if (checks && rest.length === 0) return { kind: 'checkConfig', config };
  if (checks) return { kind: 'help', problem: '--check-config does nothing else' };
  return commandOf(rest, config, newKey);
}

function commandOf(rest: readonly string[], config: string, newKey: boolean): AgentCommand {
  const [verb, address, token, ...more] = rest;
  if (verb === 'run' && address === undefined && !newKey) return { kind: 'run', config };
  if (verb === 'nginx' && address === undefined && !newKey) return { kind: 'nginx', config };
  if (verb === 'join' && address !== undefined && token !== undefined && more.length === 0) {
    return { kind: 'join', address, token, newKey, config };
  }
  const problem = verb === undefined ? {} : { problem: `I do not understand "${rest.join(' ')}"` };
  return { kind: 'help', ...problem };
}
