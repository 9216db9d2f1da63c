/** The control plane's command line. Pure. */
import { parseArgs } from 'node:util';

/** What one start has to do. */
export type ControlPlaneCommand =
  | { readonly kind: 'run'; readonly options: RunOptions }
  | { readonly kind: 'checkConfig'; readonly config: string }
  | { readonly kind: 'backup' | 'restore'; readonly config: string; readonly file: string }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problem: string };

/** What a start may do in addition to serving. */
export interface RunOptions {
  readonly config: string;
  readonly restored: boolean;
  readonly acceptNewIdentity: boolean;
  readonly acceptUnprovenDurability: boolean;
  readonly newAdminToken: boolean;
}

const defaultConfig = '/etc/rackwright/controlplane.yaml';

export const usage = `rackwright-controlplane: the program that owns all state

  (no command)         serve operators and agents
    --restored                      the store was restored from a copy: agents destroy nothing
                                    until a person accepts that
    --accept-new-identity           make certificate authority and keys anew beside a store that
                                    is not empty
    --accept-unproven-durability    use a store that cannot show that it survives a power loss
    --new-admin-token               replace the token of the administrator
  backup --to FILE.tar       copy the store and the identity into a new file, also while it serves
  restore --from FILE.tar    put both back where nothing serves yet
  --check-config       say what is wrong with the configuration, as FILE:LINE: KEY …, and end:
                       0 nothing is, 2 something is
  --help               this

  --config FILE        YAML or JSON; ${defaultConfig} unless given
`;

const configOption = { config: { type: 'string', default: defaultConfig } } as const;
const helpOption = { help: { type: 'boolean', short: 'h', default: false } } as const;

/** Parses the words after the program's name. */
export function parseArguments(args: readonly string[]): ControlPlaneCommand {
  try {
    const [verb, ...rest] = args;
    if (verb === 'help') return { kind: 'help' };
    if (verb === 'backup' || verb === 'restore') return copyOf(verb, rest);
    return serviceOf(args);
  } catch (error) {
    // An error of parseArgs is the caller's mistake.
    if (error instanceof TypeError) return { kind: 'wrong', problem: error.message };
    throw error;
  }
}

function copyOf(kind: 'backup' | 'restore', args: readonly string[]): ControlPlaneCommand {
  const [parameter, other] =
    kind === 'backup' ? (['to', 'from'] as const) : (['from', 'to'] as const);
  const { values } = parseArgs({
    args: [...args],
    options: { ...configOption, ...helpOption, to: { type: 'string' }, from: { type: 'string' } },
  });
  const { config, [parameter]: file = '', [other]: unused } = values;
  if (values.help) return { kind: 'help' };
  if (unused !== undefined) return { kind: 'wrong', problem: `${kind} takes no --${other}` };
  if (file === '') return { kind: 'wrong', problem: `${kind} needs --${parameter} FILE.tar` };
  return { kind, config, file };
}

function serviceOf(args: readonly string[]): ControlPlaneCommand {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...configOption,
      ...helpOption,
      'check-config': { type: 'boolean', default: false },
      restored: { type: 'boolean', default: false },
      'accept-new-identity': { type: 'boolean', default: false },
      'new-admin-token': { type: 'boolean', default: false },
      'accept-unproven-durability': { type: 'boolean', default: false },
    },
  });
  const { config } = values;
  if (values.help) return { kind: 'help' };
  if (values['check-config']) return { kind: 'checkConfig', config };
  const options: RunOptions = {
    config,
    restored: values.restored,
    acceptNewIdentity: values['accept-new-identity'],
    acceptUnprovenDurability: values['accept-unproven-durability'],
    newAdminToken: values['new-admin-token'],
  };
  return { kind: 'run', options };
}
