/** The client of rack commands, and their output. */
import {
  counted,
  type Rack,
  RackSchema,
  RackService,
  type RackStatus,
  type RestoredStore,
} from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
import type { SharedFlags } from '../../flags.ts';
import { enumName } from '../../output/enum-name.ts';
import { isForPrograms, printAs, printFields } from '../../output/show.ts';
import { labelText } from '../../output/text.ts';
import { ago } from '../../output/time.ts';
import { callsOf } from '../frame/calls.ts';
import { budgetText, freezeFields } from '../frame/limits.ts';
import { discoveryText } from './discovery.ts';

export const withRacks = callsOf(RackService);

/** "connected", "away" or "never joined", and the reason why it does not work. */
export function agentState({ status }: Rack): string {
  if (status?.agentConnected === true) return 'connected';
  return status?.agentKeySha256 === '' ? 'never joined' : 'away';
}

/** One rack: everything of it, a line each. */
export function showRack(io: CommandIo, { output }: SharedFlags, rack: Rack): void {
  if (isForPrograms(output)) {
    printAs(io, output, RackSchema, rack);
    return;
  }
  const { name, labels, spec, status } = rack;
  printFields(io, [
    ['name', name],
    ['display name', spec?.displayName ?? ''],
    ['labels', labelText(labels)],
    ['agent', agentState(rack)],
    ...agentFields(io, status),
    ...faultFields(io, rack.status),
    ['to forget', hostsText(status?.tombstones ?? 0)],
    ['runs at once', String(spec?.limits?.runs ?? '')],
    ['wipe budget', budgetText(spec?.wipeBudget)],
    ['power sync', powerSyncText(rack)],
    ['discovery', discoveryText(spec?.discovery, status?.discoveredMachines ?? 0)],
    ...freezeFields(io, status?.freeze),
    ...restoredFields(io, status?.restoredStore),
  ]);
}

function agentFields(io: CommandIo, status: RackStatus | undefined): [string, string][] {
  return [
    ['agent version', status?.agentVersion ?? ''],
    ['last seen', ago(io.clock, status?.lastSeenTime)],
    ['agent key', status?.agentKeySha256 ?? ''],
    ...keyFields(io, status),
    ['refused agent', status?.duplicateAgent ?? ''],
  ];
}

/** The agent's key: since when it is the rack's, until when it is proved, and the key before it. */
function keyFields({ clock }: CommandIo, status: RackStatus | undefined): [string, string][] {
  const { agentJoinTime, certificateExpireTime, revokedKeys = 0, lastRevoked } = status ?? {};
  const revoked =
    lastRevoked === undefined
      ? ''
      : `${revokedKeys}; the last ${ago(clock, lastRevoked.time)} by ${lastRevoked.by}: ` +
        lastRevoked.reason;
  return [
    ['joined', ago(clock, agentJoinTime)],
    ['certificate ends', ago(clock, certificateExpireTime)],
    ['revoked keys', revoked],
  ];
}

/** Revisions that the agent has seen and the store lacks, for the person who accepts it. */
function restoredFields(
  { clock }: CommandIo,
  restored: RestoredStore | undefined,
): [string, string][] {
  if (restored === undefined) return [];
  const { since, seenIncarnation, seenRevision, incarnation, revision, journal } = restored;
  return [
    ['restored', `${ago(clock, since)}; nothing is ordered until it is accepted`],
    ['agent has seen', `revision ${seenRevision} of ${seenIncarnation || 'no store'}`],
    ['store was at', `revision ${revision} of ${incarnation}`],
    ...journal.map((line): [string, string] => ['journal', line]),
  ];
}

/** The faults that its agent reports on its network. */
function faultFields({ clock }: CommandIo, status: RackStatus | undefined): [string, string][] {
  return (status?.faults ?? []).map(({ type, message, since }): [string, string] => {
    return ['fault', `${enumName('RackFaultType', type)}: ${message} (${ago(clock, since)})`];
  });
}

function powerSyncText({ spec }: Rack): string {
  const seconds = spec?.powerSyncSeconds ?? 60;
  const policy = enumName('PowerMismatchPolicy', spec?.powerMismatch ?? 0) || 'report';
  return seconds === 0 ? 'off' : `every ${seconds} s; a mismatch: ${policy}`;
}

function hostsText(count: number): string {
  return count === 0 ? '' : `${counted(count, 'host')} removed by force`;
}
