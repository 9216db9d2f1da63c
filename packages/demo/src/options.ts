/** The command line of the demo. */
import { parseArgs } from 'node:util';
import { errorText } from '@rackwright/platform';
import { type FaultName, faultNames, isFaultName } from './faults.ts';

export interface DemoOptions {
  readonly hosts: number;
  readonly racks: number;
  /** Decides MACs, serials, delays of BMCs. */
  readonly seed: number;
  readonly faults: readonly PlannedFault[];
  /** Files with commands to run in place of the story, one after another. */
  readonly scripts: readonly string[];
  /** Run the story and end, instead of staying up. */
  readonly check: boolean;
  /** A folder with programs that were bundled before; missing ones are bundled. */
  readonly programs: string | undefined;
  /** Keep the state in NATS servers of the demo's own. */
  readonly nats: boolean;
  /** Where no picture can be painted, prints a line for each step and not only for each state. */
  readonly verbose: boolean;
}

export interface PlannedFault {
  readonly name: FaultName;
  /** Unset means a host that the seed chooses. */
  readonly host: string | undefined;
}

export type ParsedOptions =
  | { readonly kind: 'run'; readonly options: DemoOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string };

const hostsMax = 64;
const racksMax = 8;
/** The default number of racks; no rack stays empty. */
const racksUsual = 2;

export const usage = `npm run demo -- [options]

  --hosts N       machines that boot and are cleaned, 1 to ${hostsMax}; 8 unless given
  --racks M       racks, each with an agent of its own, 1 to ${racksMax}; 2 unless given,
                  1 with --hosts 1
  --seed S        the same seed makes the same machines; 1 unless given
  --fault KIND    what is wrong with a host from the start, KIND or KIND:HOST; may be repeated:
                  ${faultNames.slice(0, 5).join(', ')},
                  ${faultNames.slice(5).join(', ')}
  --script FILE   run the commands of FILE in place of the story, and end; may be repeated. Of a
                  guide (FILE.md, or the name of one of ours) the code blocks are run
  --programs DIR  take the bundled programs of DIR instead of bundling them anew
  --nats          keep the state in three NATS servers of the demo's own; "npm run peers" fetches
                  the program
  --check         run the story and end: exit code 0 when all of it held, 1 when not
  --verbose       without a terminal, a line for each step and not only for each state

A script has one command a line: wait, kill, start, strangers, boot, manifest, fault, swap, mark,
run, fail, see, sleep or say; what each takes stands in packages/demo/README.md.
`;

const spelling = {
  hosts: { type: 'string', default: '8' },
  racks: { type: 'string' },
  seed: { type: 'string', default: '1' },
  fault: { type: 'string', multiple: true, default: [] as string[] },
  script: { type: 'string', multiple: true, default: [] as string[] },
  programs: { type: 'string' },
  nats: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
  verbose: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

export function parseOptions(args: readonly string[]): ParsedOptions {
  try {
    const { values } = parseArgs({ args: [...args], options: spelling, allowPositionals: false });
    if (values.help) return { kind: 'help' };
    const hosts = whole('--hosts', values.hosts, 1, hostsMax);
    const racksText = values.racks ?? String(Math.min(racksUsual, hosts));
    const racks = whole('--racks', racksText, 1, Math.min(racksMax, hosts));
    const seed = whole('--seed', values.seed, 0, 0xffff_ffff);
    const faults = values.fault.map((text) => plannedFault(text, hosts));
    const { script: scripts, programs, nats, check, verbose } = values;
    const options = { hosts, racks, seed, faults, scripts, programs, nats, check, verbose };
    return { kind: 'run', options };
  } catch (error) {
    return { kind: 'wrong', message: errorText(error) };
  }
}

function whole(flag: string, text: string, least: number, most: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new Error(`${flag} is "${text}"; it must be a whole number from ${least} to ${most}`);
}

function plannedFault(text: string, hosts: number): PlannedFault {
  const [name = '', host] = text.split(':');
  if (!isFaultName(name)) {
    throw new Error(`--fault is "${text}"; it must be one of ${faultNames.join(', ')}`);
  }
  if (host === undefined) return { name, host };
  const number = /^h(\d{1,3})$/.exec(host)?.[1] ?? '0';
  if (Number(number) >= 1 && Number(number) <= hosts) return { name, host };
  throw new Error(`--fault ${text}: there is no host ${host}; hosts are h1 to h${hosts}`);
}
