/** How pools, their hosts and their history are shown. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  type DeployHistoryEntry,
  type HostSelector,
  type PlannedRollout,
  type Pool,
  type PoolAmount,
  type PoolHost,
  poolCondition,
  type RolloutPolicy,
  type RolloutSlot,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { deployText } from './deploy.ts';
import { enumName } from './enum-name.ts';
import type { TextColumn } from './table.ts';
import { labelText } from './text.ts';
import { ago, duration } from './time.ts';

/** Digits of a digest that tell images apart for people. */
const digestShown = 12;
/** So that of two images the ends of their digests show that they differ. */
const imageCell = { keepsEnds: true, widthMin: 18 } as const;

/** Columns of `pool list`. */
export function poolColumns(): TextColumn<Pool>[] {
  return [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'HOSTS', value: ({ status }) => String(status?.hostCount ?? 0) },
    { title: 'ON IMAGE', value: ({ status }) => String(status?.currentCount ?? 0) },
    { title: 'OUT', value: outText, dropOrder: 3 },
    { title: 'FAILED', value: ({ status }) => String(status?.failedCount ?? 0), dropOrder: 2 },
    { title: 'STATE', value: stateText, widthMin: 12 },
    { title: 'IMAGE', value: ({ spec }) => spec?.image ?? '', widthMin: 20, dropOrder: 1 },
  ];
}

/** Columns of `pool hosts`. */
export const poolHostColumns: TextColumn<PoolHost>[] = [
  { title: 'HOST', value: ({ host }) => host },
  { title: 'RACK', value: ({ rack }) => rack, dropOrder: 2 },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'HEALTHY', value: ({ healthy }) => (healthy ? 'yes' : 'no'), dropOrder: 3 },
  { title: 'IMAGE', ...imageCell, value: ({ image }) => shortImage(image), dropOrder: 1 },
  { title: 'SAYS', value: ({ message }) => message, widthMin: 20 },
];

/** Columns of the slots of a pool. */
export function slotColumns(clock: Clock): TextColumn<RolloutSlot>[] {
  return [
    { title: 'SLOT OF', value: ({ host }) => host },
    { title: 'FOR', ...imageCell, value: ({ image }) => shortImage(image) },
    { title: 'STATE', value: ({ state }) => enumName('RolloutSlotState', state) },
    { title: 'SINCE', value: ({ takeTime }) => ago(clock, takeTime) },
    { title: 'SAYS', value: ({ message }) => message, widthMin: 20 },
  ];
}

/** Columns of `pool history`. */
export function deployHistoryColumns(clock: Clock): TextColumn<DeployHistoryEntry>[] {
  return [
    { title: 'DIGEST', value: ({ digest }) => digest, widthMin: 19 },
    { title: 'VERSION', value: ({ version }) => version, dropOrder: 1 },
    { title: 'HOSTS', value: ({ hostCount }) => String(hostCount) },
    { title: 'LAST DEPLOYED', value: ({ lastDeployed }) => ago(clock, lastDeployed) },
    { title: 'RUN IT NOW', value: ({ currentHosts }) => String(currentHosts) },
  ];
}

/** Columns of `pool plan`. */
export const plannedRolloutColumns: TextColumn<PlannedRollout>[] = [
  { title: 'HOST', value: ({ host }) => host },
  { title: 'WAVE', value: ({ wave }) => String(wave), dropOrder: 3 },
  { title: 'RUN', value: ({ kind }) => enumName('RunKind', kind) },
  { title: 'FROM', ...imageCell, value: ({ fromImage }) => shortImage(fromImage), dropOrder: 2 },
  { title: 'TO', ...imageCell, value: ({ toImage }) => shortImage(toImage), dropOrder: 1 },
  { title: 'LOSES', value: ({ lostDisks }) => lostDisks.join(' '), dropOrder: 4 },
  { title: 'KEEPS', value: ({ keptDisks }) => keptDisks.join(' '), dropOrder: 5 },
  { title: 'GATE', value: ({ askedAtGate }) => (askedAtGate ? 'asked' : ''), dropOrder: 6 },
  { title: 'KEPT BY', value: ({ blockedBecause }) => blockedBecause, widthMin: 16 },
];

/** Names and values of one pool; slots and history have tables of their own. */
export function poolFields(
  { name, labels, spec, status, createTime }: Pool,
  clock: Clock,
): (readonly [string, string])[] {
  const { target, rolledBackFrom = '', conditions = [] } = status ?? {};
  return [
    ['name', name],
    ['labels', labelText(labels)],
    ['hosts', selectorText(spec?.hosts)],
    ['size', spec?.size === undefined ? 'all of them' : String(spec.size)],
    ['image', spec?.image ?? ''],
    ['resolved every', durationText(spec?.pollInterval, '5m')],
    ...Object.entries(spec?.pins ?? {}).map(([host, image]) => [`pin of ${host}`, image] as const),
    ['target', target === undefined ? 'not resolved yet' : target.image],
    ['version', target?.version ?? ''],
    ['went back from', rolledBackFrom],
    ['deployed', deployText(spec?.deploy)],
    ['counts', countsText(status)],
    ...rolloutFields(spec?.rollout),
    ...conditions.map(({ type, reason, message, since }): readonly [string, string] => {
      return [type, `${reason} (${ago(clock, since)}): ${message}`];
    }),
    ['deleting', status?.deleting === true ? 'yes' : ''],
    ['created', ago(clock, createTime)],
  ];
}

/** "web: 3 of 40 on the image, 2 of 2 out; RolloutInProgress", as a watch prints it. */
export function poolLine(pool: Pool): string {
  const { name, status } = pool;
  const failed = (status?.failedCount ?? 0) > 0 ? `, ${status?.failedCount} failed` : '';
  const digest = status?.target?.digest ?? '';
  const target = digest === '' ? '' : `  ${shortDigest(digest)}`;
  return `${name}  ${countsText(status)}${failed}  ${stateText(pool)}${target}`;
}

function countsText(status: Pool['status']): string {
  const {
    currentCount = 0,
    hostCount = 0,
    unavailableCount = 0,
    unavailableMax = 0,
  } = status ?? {};
  const out = `${unavailableCount} of ${unavailableMax} out`;
  return `${currentCount} of ${hostCount} on the image, ${out}`;
}

function rolloutFields(policy: RolloutPolicy | undefined): (readonly [string, string])[] {
  const { waves = [], windows = [], soak, gate, healthTimeout } = policy ?? {};
  return [
    ['out at once', amountText(policy?.maxUnavailable, '1')],
    ['out per rack', String(policy?.maxUnavailablePerRack ?? '')],
    ['failures at most', amountText(policy?.failureThreshold, '5%, but at least 2')],
    ['soak', durationText(soak, '')],
    ['healthy within', durationText(healthTimeout, '15m')],
    ...waves.map(({ name, hosts }, index): readonly [string, string] => {
      return [`wave ${index}${name === '' ? '' : ` (${name})`}`, selectorText(hosts)];
    }),
    [
      'windows',
      windows
        .map(
          (each) =>
            `${each.cron} for ${durationText(each.duration, '')} in ${each.timeZone || 'UTC'}`,
        )
        .join('; '),
    ],
    ['gate', gateText(gate)],
    ['rollback', policy?.rollback === true ? 'yes' : ''],
    ['paused', policy?.paused === true ? 'yes' : ''],
  ];
}

function gateText(gate: RolloutPolicy['gate']): string {
  const { approval = false, webhookUrl = '' } = gate ?? {};
  const gates = [approval ? 'approval' : '', webhookUrl].filter((each) => each !== '');
  if (gates.length === 0) return '';
  return `${gates.join(' and ')}, waited for ${durationText(gate?.deadline, '1d')}`;
}

function selectorText(selector: HostSelector | undefined): string {
  const { names = [], rack = '', labels = {} } = selector ?? {};
  return [...names, rack, labelText(labels)].filter((text) => text !== '').join(' ');
}

function durationText(given: RolloutPolicy['soak'], unset: string): string {
  return given === undefined ? unset : duration(durationMs(given));
}

function amountText(given: PoolAmount | undefined, unset: string): string {
  const amount = given?.amount;
  if (amount?.case === undefined) return unset;
  return amount.case === 'percent' ? `${amount.value}%` : String(amount.value);
}

function outText({ status }: Pool): string {
  return `${status?.unavailableCount ?? 0}/${status?.unavailableMax ?? 0}`;
}

function stateText({ status }: Pool): string {
  if (status?.deleting === true) return 'deleting';
  const degraded = poolCondition(status, 'Degraded');
  return degraded?.status !== true ? stateOf(status) : `${stateOf(status)}, ${degraded.reason}`;
}

function stateOf(status: Pool['status']): string {
  return poolCondition(status, 'UpToDate')?.reason ?? '';
}

/** "registry.example/os@sha256:0123456789ab", or a URL with its digest as short. */
function shortImage(image: string): string {
  return image.replace(/([@#]sha256[:=][0-9a-f]{12})[0-9a-f]{52}$/, '$1');
}

function shortDigest(digest: string): string {
  return digest.slice(0, 'sha256:'.length + digestShown);
}
