/** How a host is shown: a row of a table, a block of fields, a line of a watch. */
import {
  type AfterFailure,
  type BmcEndpoint,
  bmcProtocolId,
  bootText,
  burnInLines,
  burnInName,
  burnInText,
  byHand,
  counted,
  type Deletion,
  DeletionMode,
  FaultSeverity,
  failureWord,
  type Hold,
  HoldScope,
  type Host,
  type HostSpec,
  HostState,
  type LastCleaned,
  type Run,
  RunOutcome,
  RunPhase,
  type RunStep,
  type ShutdownPolicy,
  StepState,
  shutdownText,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { deployText, rootDiskText, writtenText } from './deploy.ts';
import { enumName } from './enum-name.ts';
import type { TextColumn } from './table.ts';
import { labelText } from './text.ts';
import { ago, instant } from './time.ts';

/** Columns of `host list`; PROBLEM is the last that a narrow terminal loses. */
export function hostColumns(
  clock: Clock,
  freezeOf: (host: Host) => string = () => '',
): TextColumn<Host>[] {
  return [
    { title: 'NAME', value: ({ name }) => name, widthMin: 12 },
    { title: 'STATE', value: stateText, widthMin: 12 },
    { title: 'RUN', value: (host) => runText(host), widthMin: 12, dropOrder: 2 },
    { title: 'RACK', value: ({ spec }) => spec?.rack ?? '', dropOrder: 4 },
    { title: 'BMC', value: ({ spec }) => spec?.bmc?.address ?? '', dropOrder: 5 },
    { title: 'POWER', value: (host) => powerText(host), dropOrder: 6 },
    {
      title: 'CHANGED',
      value: ({ updateTime }) => ago(clock, updateTime),
      dropOrder: 3,
    },
    {
      title: 'PROBLEM',
      value: (host) => [problemText(host), freezeOf(host)].filter(Boolean).join('; '),
      widthMin: 24,
      dropOrder: 1,
    },
  ];
}

/** The same, with what `host list` shows in a wide table, or when it is named. */
export function allHostColumns(
  clock: Clock,
  freezeOf?: (host: Host) => string,
): readonly TextColumn<Host>[] {
  const more = moreHostColumns(clock).map((column) => ({ ...column, wideOnly: true }));
  return [...hostColumns(clock, freezeOf), ...more];
}

function moreHostColumns(clock: Clock): TextColumn<Host>[] {
  return [
    { title: 'GOAL', value: ({ spec }) => enumName('HostGoal', spec?.goal ?? 0) || 'available' },
    { title: 'CREDENTIAL', value: ({ spec }) => spec?.bmc?.credential ?? '' },
    { title: 'MACS', value: ({ spec }) => spec?.bootMacs.join(' ') ?? '', widthMin: 17 },
    { title: 'SERIAL', value: ({ status }) => status?.bmcIdentity?.serial ?? '' },
    { title: 'CLAIM', value: ({ status }) => status?.claim?.by ?? '' },
    { title: 'IMAGE', value: ({ status }) => status?.image ?? '', widthMin: 20, keepsEnds: true },
    { title: 'LABELS', value: ({ labels }) => labelText(labels), widthMin: 20 },
    { title: 'CREATED', value: ({ createTime }) => ago(clock, createTime) },
    { title: 'UID', value: ({ uid }) => uid },
  ];
}

/** "available", "manageable, dirty". */
export function stateText({ status }: Host): string {
  const display = status?.display ?? '';
  const dirty = status?.dirty === true && status.state === HostState.MANAGEABLE;
  return dirty ? `${display}, dirty` : display;
}

/** "clean 3: 2/5 deploy.erase_devices 42%"; '' without a run under way. */
export function runText({ status }: Host): string {
  const run = status?.run;
  if (run === undefined || run.phase === RunPhase.ENDED) return '';
  const step = run.steps[run.currentStep];
  const position = `${run.currentStep + 1}/${run.steps.length}`;
  const at = step === undefined ? '' : ` ${position} ${step.title || step.name}`;
  const percent = status?.progress === undefined ? '' : ` ${status.progress.percent}%`;
  return `${runName(run)}:${at}${percent}`;
}

/** One line for a host that changed. */
export function changeText(host: Host): string {
  const parts = [host.name, stateText(host), runText(host), problemText(host)];
  return parts.filter((part) => part !== '').join('  ');
}

/** The same of a time in the past: nothing is kept of whether the agent was there. */
export function pastHostFields(host: Host, clock: Clock): [string, string][] {
  return hostFields(host, clock).filter(([name]) => name !== 'agent');
}

/** All that `host get` shows. */
export function hostFields(host: Host, clock: Clock): [string, string][] {
  const { spec, status } = host;
  return [
    ['name', host.name],
    ['uid', host.uid],
    ['state', stateText(host)],
    ['run', runText(host)],
    ...waitingFields(status?.run, clock),
    ['problem', problemText(host)],
    ...useFields(host, clock),
    ...stepFields(status?.run),
    ['rack', spec?.rack ?? ''],
    ['agent', status?.agentConnected === true ? 'connected' : 'away'],
    ['bmc', spec?.bmc === undefined ? '' : bmcText(spec.bmc)],
    ...bootWayFields(spec),
    ['power', powerText(host, { withWish: true })],
    ['shutdown', policyText(spec?.shutdown)],
    ['root disk', rootDiskText(spec?.rootDisk)],
    ['goal', enumName('HostGoal', spec?.goal ?? 0) || 'available'],
    ['labels', labelText(host.labels)],
    ...stayFields(status?.afterFailure, clock),
    ...cleanedFields(status?.lastCleaned, clock),
    ...bootFields(host, clock),
    ...burnInFields(host, clock),
    ...inventoryFields(host),
    ['created', instant(host.createTime)],
    ['changed', instant(host.updateTime)],
    ['etag', host.etag],
  ];
}

function cleanedFields(last: LastCleaned | undefined, clock: Clock): [string, string][] {
  const certificates = last?.certificates ?? [];
  return [
    ['last cleaned', cleanedText(last, clock)],
    ...certificates.map((name): [string, string] => ['', name]),
  ];
}

function bmcText({ address, port, protocol, credential }: BmcEndpoint): string {
  const at = port === undefined ? address : `${address} port ${port}`;
  const spoken = bmcProtocolId(protocol) ?? enumName('BmcProtocol', protocol);
  if (spoken === byHand) return 'none: a person switches it';
  return `${at} by ${spoken} with ${credential}`;
}

function waitingFields(run: Run | undefined, clock: Clock): [string, string][] {
  const waiting = run?.phase === RunPhase.WAITING ? run.waiting : undefined;
  if (waiting === undefined) return [];
  const { message, since, position } = waiting;
  const queueText = position === undefined ? '' : `, place ${position} in the queue`;
  const text = `${waiting.reason}: ${message} (since ${ago(clock, since)}${queueText})`;
  return [['waiting for', text]];
}

/** "12 s ago, full"; '' when it never was. */
function cleanedText(cleaned: LastCleaned | undefined, clock: Clock): string {
  if (cleaned === undefined) return '';
  return `${ago(clock, cleaned.at)}, ${enumName('ErasureLevel', cleaned.level)}`;
}

function stayFields(stay: AfterFailure | undefined, clock: Clock): [string, string][] {
  if (stay === undefined) return [];
  const { run, runnerUntil, bootOnly } = stay;
  const until = runnerUntil === undefined ? '' : `; switched off ${ago(clock, runnerUntil)}`;
  return [[`after ${run}`, `boots only the ${bootOnly} or rescue${until}; it can be resumed`]];
}

function stepFields(run: Run | undefined): [string, string][] {
  if (run === undefined) return [];
  const outcome = run.phase === RunPhase.ENDED ? ` ${enumName('RunOutcome', run.outcome)}` : '';
  return run.steps.map((step, index): [string, string] => {
    const attempt = step.attempt > 1 ? ` (attempt ${step.attempt})` : '';
    const error = step.error === '' ? '' : `: ${step.error}`;
    const skip = step.skip === undefined ? '' : `: left out by ${step.skip.by}`;
    const word = step.word === undefined ? '' : `: done by hand, says ${step.word.by}`;
    const why = step.skip?.reason ? ` (${step.skip.reason})` : '';
    const did = `${enumName('StepState', step.state)} ${step.title || step.name}${attempt}`;
    const text = `${did}${skip}${why}${word}${shutdownOf(step)}${error}`;
    return [index === 0 ? `${runName(run)}${outcome}` : '', text];
  });
}

/** ": waits for its system to shut down until 12:05, then it is forced off"; '' for none. */
function shutdownOf({ shutdown, state }: RunStep): string {
  if (shutdown?.duration !== undefined) return `: ${shutdownText(shutdown)}`;
  if (shutdown === undefined || state !== StepState.RUNNING) return '';
  const until = instant(shutdown.deadline);
  return `: waits for the system to shut down until ${until}, then it is forced off`;
}

/** "graceful, within 120 s"; '' where nothing is set. */
function bootWayFields(spec: HostSpec | undefined): [string, string][] {
  return [
    ['boot macs', spec?.bootMacs.join(' ') ?? ''],
    ['boot method', enumName('BootMethod', spec?.boot?.method ?? 0)],
  ];
}

function policyText(policy: ShutdownPolicy | undefined): string {
  if (policy === undefined) return '';
  const { mode, timeoutSeconds } = policy;
  const within = timeoutSeconds === undefined ? '' : `within ${timeoutSeconds} s`;
  return [enumName('ShutdownMode', mode) || 'as is usual', within].filter(Boolean).join(', ');
}

/** People's notes on the host, and its problems. */
function useFields({ status }: Host, clock: Clock): [string, string][] {
  const { claim, deletion, holds = [], faults = [] } = status ?? {};
  const claimed = claim === undefined ? '' : `${claim.by} ${ago(clock, claim.at)}: ${claim.reason}`;
  return [
    ['to be deleted', deletion === undefined ? '' : deletionText(deletion, clock)],
    ['claimed by', claimed],
    ...holds.map((hold): [string, string] => [holdName(hold), holdText(hold, clock)]),
    ...faults.map(({ type, message, since, severity }): [string, string] => [
      severity === FaultSeverity.WARNING ? 'warning' : 'fault',
      `${type}: ${message} (${ago(clock, since)})`,
    ]),
    ['image', status?.image ?? ''],
    ['deployed', deployText(status?.deploy)],
    ['written disk', writtenText(status?.writtenDisk)],
  ];
}

function deletionText({ mode, by, at, reason }: Deletion, clock: Clock): string {
  const how = mode === DeletionMode.FORCE ? 'by force, ' : '';
  return `${how}asked by ${by} ${ago(clock, at)}${reason === '' ? '' : `: ${reason}`}`;
}

/** "held", "power held", "release held" */
function holdName({ scope }: Hold): string {
  return scope === HoldScope.WORK ? 'held' : `${enumName('HoldScope', scope)} held`;
}

function holdText({ by, since, until, reason }: Hold, clock: Clock): string {
  const end = until === undefined ? '' : `, ends ${ago(clock, until)}`;
  return `by ${by} ${ago(clock, since)}${end}: ${reason}`;
}

/** "3 min ago: the boot got as far as the boot script; the kernel never came" */
function bootFields({ status }: Host, clock: Clock): [string, string][] {
  const [last] = status?.boots ?? [];
  return last === undefined
    ? []
    : [['last boot', `${ago(clock, last.startTime)}: ${bootText(last)}`]];
}

/** The last burn-in of each kind, and below it a line for each of its parts. */
function burnInFields({ status }: Host, clock: Clock): [string, string][] {
  return (status?.burnIns ?? []).flatMap((burnIn) => {
    const name = burnInName(burnIn);
    const all = [`${ago(clock, burnIn.endTime)}: ${burnInText(burnIn)}`, ...burnInLines(burnIn)];
    return all.map((text): [string, string] => [name, text]);
  });
}

function inventoryFields({ status }: Host): [string, string][] {
  const inventory = status?.inventory;
  if (inventory === undefined) return [];
  const { system } = inventory;
  const memoryGib = Number(inventory.memoryBytes / 2n ** 20n) / 1_024;
  return [
    ['machine', [system?.manufacturer, system?.product, system?.serial].filter(Boolean).join(' ')],
    ['memory', `${memoryGib.toFixed(1)} GiB`],
    ...inventory.cpus.map((cpu): [string, string] => [
      'cpu',
      `${cpu.model} (${counted(cpu.cores, 'core')})`,
    ]),
    ...inventory.devices.map((device): [string, string] => [
      'disk',
      `${device.device} ${device.model} ${device.serial}`,
    ]),
    ...inventory.interfaces.map((each): [string, string] => [
      'interface',
      `${each.name} ${each.mac}`,
    ]),
  ];
}

/** The worst problem of a host, and its holder: a hold hides no fault. */
export function problemText(host: Host): string {
  const [hold] = host.status?.holds ?? [];
  const held = hold === undefined ? '' : `${holdName(hold)}: ${hold.reason}`;
  return [worstText(host), held].filter(Boolean).join('; ');
}

function worstText({ status }: Host): string {
  const faults = status?.faults ?? [];
  const fault = faults.find(({ severity }) => severity !== FaultSeverity.WARNING) ?? faults[0];
  if (fault !== undefined) return `${fault.type}: ${fault.message}`;
  const failure = status?.lastError?.failure;
  if (failure !== undefined) return `${failureWord(failure.type)}: ${failure.message}`;
  const ended = status?.run?.phase === RunPhase.ENDED ? status.run : undefined;
  const failed = ended !== undefined && ended.outcome !== RunOutcome.SUCCEEDED;
  return failed ? `${runName(ended)} ${enumName('RunOutcome', ended.outcome)}` : '';
}

function runName(run: Run): string {
  return `${enumName('RunKind', run.kind)} ${run.number}`;
}

function powerText(
  { spec, status }: Host,
  { withWish = false }: { readonly withWish?: boolean } = {},
): string {
  const isOn = status?.poweredOn === undefined ? '' : status.poweredOn ? 'on' : 'off';
  const word = status?.powerWord;
  const is = word === undefined ? isOn : `${isOn} (${word.by} says so)`;
  const wish = enumName('HostPower', spec?.power ?? 0);
  return !withWish || wish === '' || wish === isOn ? is : `${is || 'unknown'}, wanted: ${wish}`;
}
