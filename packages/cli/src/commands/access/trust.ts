/** rackwright trust … */
import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type Authorities,
  AuthoritiesSchema,
  type Authority,
  AuthorityService,
  type AuthorityWait,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { connectionFlags, outputFlag, resourceName, type SharedFlags } from '../../flags.ts';
import { enumName } from '../../output/enum-name.ts';
import { isForPrograms, printAs, printLines, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { ago } from '../../output/time.ts';
import { callsOf } from '../frame/calls.ts';
import { type BrakeFlags, brakeFlags } from '../frame/limits.ts';

const shared = { ...connectionFlags, ...outputFlag };
const aliases = { o: 'output' } as const;
/** Digits of a fingerprint that name an authority. */
const shownDigits = 16;

const withAuthorities = callsOf(AuthorityService);

const show = buildCommand({
  docs: {
    brief: 'Show the certificate authorities, and what their rotation waits for',
    fullDescription:
      'One signs. The next one is trusted first and signs once every agent trusts it; a ' +
      'retired one goes once nothing lives that it has signed. Each moves on by itself.',
  },
  parameters: { flags: shared, aliases },
  async func(this: CliContext, flags: SharedFlags) {
    const all = await withAuthorities(this.io, flags, (client) => client.getAuthorities({}));
    print(this.io, flags, all);
  },
});

const bundle = buildCommand({
  docs: {
    brief: 'Print every trusted certificate authority, for --ca-file',
    fullDescription:
      'What operators’ CA files must hold: written there anew after each rotation was ' +
      'begun. The control plane keeps the same text in identity/ca.pem.',
  },
  parameters: { flags: connectionFlags },
  async func(this: CliContext, flags: Omit<SharedFlags, 'output'>) {
    const all = await withAuthorities(this.io, flags, (client) => client.getAuthorities({}));
    this.io.out.write(all.bundlePem);
  },
});

const rotate = buildCommand({
  docs: {
    brief: 'Make the next certificate authority; it takes over by itself, without an interruption',
    fullDescription:
      'Agents are told to trust it at once. It signs after a day at the earliest, in which ' +
      'operators’ CA files are renewed (rackwright trust bundle), and once all agents trust it.',
  },
  parameters: { flags: { ...shared, ...brakeFlags }, aliases },
  async func(this: CliContext, flags: SharedFlags & BrakeFlags) {
    const { reason, requestId } = flags;
    const all = await withAuthorities(this.io, flags, (client) =>
      client.rotateAuthority({ reason, requestId }),
    );
    print(this.io, flags, all);
    if (!isForPrograms(flags.output)) {
      this.io.err.write('Next: rackwright trust bundle, into the CA file of every operator\n');
    }
  },
});

interface AdvanceFlags extends SharedFlags, BrakeFlags {
  readonly giveUp?: readonly string[];
}

const advance = buildCommand({
  docs: {
    brief: 'End a wait of the rotation, at the cost of the racks that are named',
    fullDescription:
      'An agent that does not trust the next authority when it signs cannot connect any more ' +
      'until it joins again (rackwright rack join-token RACK --replace). Every rack that is lost ' +
      'by this has to be named, and no other (rackwright trust show).',
  },
  parameters: {
    flags: {
      ...shared,
      ...brakeFlags,
      giveUp: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'A rack that is given up; may be repeated',
        placeholder: 'rack',
      },
    },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          brief: 'The authority: the first digits of its SHA-256',
          parse: String,
          placeholder: 'authority',
        },
      ],
    },
    aliases,
  },
  async func(this: CliContext, flags: AdvanceFlags, authority: string) {
    const { reason, requestId } = flags;
    const giveUp = (flags.giveUp ?? []).map((rack) => resourceName('racks', rack));
    const all = await withAuthorities(this.io, flags, (client) =>
      client.advanceAuthority({ authority, giveUp, reason, requestId }),
    );
    print(this.io, flags, all);
  },
});

/** All commands on certificate authorities. */
export const trustRoutes = buildRouteMap({
  routes: { show, bundle, rotate, advance },
  docs: { brief: briefs.trust },
});

function print(io: CommandIo, { output }: SharedFlags, all: Authorities): void {
  if (isForPrograms(output)) {
    printAs(io, output, AuthoritiesSchema, all);
    return;
  }
  printTable(io, output, columns(io), all.authorities);
  const waiting = all.authorities.flatMap((one) => [
    ...one.waits.map((wait) => waitText(io, one, wait)),
    ...more(one),
  ]);
  printLines(io, waiting.length === 0 ? [] : ['', ...waiting]);
  printLines(io, all.faults.length === 0 ? [] : ['', ...all.faults]);
}

function columns({ clock }: CommandIo): TextColumn<Authority>[] {
  return [
    { title: 'AUTHORITY', value: ({ sha256 }) => sha256.slice(0, shownDigits) },
    { title: 'STAGE', value: ({ stage }) => enumName('AuthorityStage', stage) },
    { title: 'SINCE', value: ({ stageTime }) => ago(clock, stageTime) },
    { title: 'ENDS', value: endDate },
    { title: 'WAITS FOR', value: ({ waitingCount }) => (waitingCount ? `${waitingCount}` : '') },
    { title: 'BY', value: ({ by }) => by, dropOrder: 2 },
    { title: 'REASON', value: ({ reason }) => reason, dropOrder: 1 },
    { title: 'GIVEN UP', value: ({ givenUp }) => givenUp.join(' '), dropOrder: 3 },
  ];
}

function endDate({ expireTime }: Authority): string {
  return expireTime === undefined ? '' : timestampDate(expireTime).toISOString().slice(0, 10);
}

function waitText({ clock }: CommandIo, { sha256 }: Authority, wait: AuthorityWait): string {
  const until = wait.until === undefined ? '' : ` (ends by itself ${ago(clock, wait.until)})`;
  const whom = wait.rack === '' ? '' : ` ${wait.rack}:`;
  return `${sha256.slice(0, shownDigits)} waits:${whom} ${wait.message}${until}`;
}

function more({ waits, waitingCount }: Authority): string[] {
  return waits.length >= waitingCount ? [] : [`… and ${waitingCount - waits.length} more`];
}
