/**
 * The runner's configuration: what stands on the kernel command line that the boot script wrote,
 * and, for machines made of software, a few arguments. Pure.
 *
 * Words of the kernel command line that are ours:
 *   rackwright.agent=HOST:PORT  rackwright.fingerprint=SHA256  rackwright.token=TOKEN
 *   rackwright.mac=MAC (for init only)
 *   rackwright.lab.verdict=off, rackwright.lab.crash=POINT:N[:PIDFILE],
 *   rackwright.lab.without=CHECK[,CHECK…] (laboratory only)
 * Other words are left alone: a newer agent may write more.
 */
import { type LabCheck, labChecks } from './steps/without-checks.ts';

export interface RunnerConfig {
  readonly agentHost: string;
  readonly agentPort: number;
  /** SHA-256 of the agent's certificate, lower-case hex. */
  readonly fingerprint: string;
  readonly bootToken: string;
  readonly stateFolder: string;
  /** Instead of this machine's disks and identity. */
  readonly software?: { readonly diskFolder: string; readonly dmiFile: string };
  readonly lab: LabConfig;
}

/** Settings that only the laboratory may use; never set in production. */
export interface LabConfig {
  readonly verdictSwitchedOff: boolean;
  /** Checks that are removed, to show which faults then get through. */
  readonly without: ReadonlySet<LabCheck>;
  /** End like `kill -9` when this point is passed for the n-th time in a boot's first runner. */
  readonly crashAt?: {
    readonly name: string;
    readonly occurrence: number;
    /** Another process that ends instead. */
    readonly pidFile?: string;
  };
}

export type ConfigResult =
  | { readonly kind: 'config'; readonly config: RunnerConfig }
  | { readonly kind: 'invalid'; readonly problems: readonly string[] };

export const defaultStateFolder = '/run/rackwright/runner';

const usage = 'arguments: [--cmdline TEXT] [--state-dir DIR] [--file-disks DIR --dmi FILE]';
const options = ['--cmdline', '--state-dir', '--file-disks', '--dmi'];
/** A misspelt word of the laboratory would silently test something else. */
const labWords = ['lab.verdict', 'lab.crash', 'lab.without'];

/** Reads arguments and the kernel's command line; `--cmdline` replaces the latter. */
export function readConfig(args: readonly string[], kernelCommandLine: string): ConfigResult {
  const problems: string[] = [];
  const given = readOptions(args, problems);
  const words = readWords(given.get('--cmdline') ?? kernelCommandLine, problems);
  const need = (name: string, pattern: RegExp, form: string): RegExpExecArray | null => {
    const value = words.get(name);
    const match = value === undefined ? null : pattern.exec(value);
    if (match === null) {
      const found = value === undefined ? 'is missing' : `is "${value}"`;
      problems.push(`rackwright.${name} ${found}; it must be ${form}`);
    }
    return match;
  };
  const agent = need('agent', /^(?:\[([0-9a-fA-F:]+)\]|([^:]+)):(\d{1,5})$/, 'HOST:PORT');
  const fingerprint = need('fingerprint', /^[0-9a-f]{64}$/, 'a SHA-256 in lower-case hex');
  const token = need('token', /^[\x21-\x7e]{1,256}$/, 'the token of the boot script');
  const software = readSoftware(given, problems);
  const lab = readLab(words, problems);
  if (problems.length > 0 || agent === null || fingerprint === null || token === null) {
    return { kind: 'invalid', problems };
  }
  return {
    kind: 'config',
    config: {
      agentHost: agent[1] ?? agent[2] ?? '',
      agentPort: Number(agent[3]),
      fingerprint: fingerprint[0],
      bootToken: token[0],
      stateFolder: given.get('--state-dir') ?? defaultStateFolder,
      lab,
      ...(software === undefined ? {} : { software }),
    },
  };
}

function readOptions(args: readonly string[], problems: string[]): Map<string, string> {
  const given = new Map<string, string>();
  for (let at = 0; at < args.length; at += 2) {
    const [name = '', value] = args.slice(at, at + 2);
    if (!options.includes(name) || value === undefined) {
      problems.push(`"${name}" is not understood; ${usage}`);
      return given;
    }
    given.set(name, value);
  }
  return given;
}

function readWords(commandLine: string, problems: string[]): Map<string, string> {
  const words = new Map<string, string>();
  for (const word of commandLine.trim().split(/\s+/)) {
    const match = /^rackwright\.([^=]+)=(.*)$/.exec(word);
    if (match === null) continue;
    const [, name = '', value = ''] = match;
    if (name.startsWith('lab.') && !labWords.includes(name)) {
      problems.push(`rackwright.${name} is unknown; known are ${labWords.join(', ')}`);
    }
    words.set(name, value);
  }
  return words;
}

function readSoftware(
  given: ReadonlyMap<string, string>,
  problems: string[],
): RunnerConfig['software'] {
  const diskFolder = given.get('--file-disks');
  const dmiFile = given.get('--dmi');
  if (diskFolder !== undefined && dmiFile !== undefined) return { diskFolder, dmiFile };
  // Half a software machine would erase the real one's disks.
  if (diskFolder !== undefined || dmiFile !== undefined) {
    problems.push('--file-disks and --dmi go together');
  }
  return undefined;
}

function readLab(words: ReadonlyMap<string, string>, problems: string[]): LabConfig {
  const verdict = words.get('lab.verdict') ?? 'on';
  if (verdict !== 'on' && verdict !== 'off') {
    problems.push(`rackwright.lab.verdict is "${verdict}"; it must be on or off`);
  }
  const crash = words.get('lab.crash');
  const verdictSwitchedOff = verdict === 'off';
  const without = readWithout(words.get('lab.without'), problems);
  if (crash === undefined) return { verdictSwitchedOff, without };
  const [, name = '', count = '1', pidFile] = /^([\w.]+)(?::(\d+)(?::(\S+))?)?$/.exec(crash) ?? [];
  const occurrence = Number(count);
  if (name === '' || occurrence < 1) {
    problems.push(`rackwright.lab.crash is "${crash}"; it must be POINT or POINT:N[:PIDFILE]`);
  }
  const crashAt = { name, occurrence, ...(pidFile === undefined ? {} : { pidFile }) };
  return { verdictSwitchedOff, without, crashAt };
}

function readWithout(list: string | undefined, problems: string[]): ReadonlySet<LabCheck> {
  const names = list === undefined ? [] : list.split(',');
  for (const name of names.filter((one) => !labChecks.some((check) => check === one))) {
    problems.push(`rackwright.lab.without: "${name}" is none of ${labChecks.join(', ')}`);
  }
  return new Set(labChecks.filter((check) => names.includes(check)));
}
