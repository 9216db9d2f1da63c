/** Validation of a pool's spec. */
import { toBinary } from '@bufbuild/protobuf';
import { type Duration, durationMs } from '@bufbuild/protobuf/wkt';
import {
  counted,
  type Pool,
  type PoolAmount,
  type PoolSpec,
  PoolSpecSchema,
  type RolloutPolicy,
} from '@rackwright/messages';
import { nameProblem } from '../../call/names.ts';
import { quote, type Violations } from '../../call/violations.ts';
import { checkDeploySpec } from '../../host/spec/deploy-spec.ts';
import { type Policy, reachProblem, urlProblem } from '../../steps/index.ts';
import { checkSelector } from '../../workflow/api/batch-spec.ts';
import { imageProblem, membersMax, pinProblem, windowProblems } from '../index.ts';

const pinsMax = 64;
const wavesMax = 20;
const windowsMax = 10;
const waveNameCharsMax = 63;
const historyLimitMax = 100;
/** With the data of its hosts, the spec has to fit in one record. */
const specBytesMax = 32 * 1024;
const minuteMs = 60_000;
const dayMs = 24 * 3_600_000;

/** Adds every violation of the spec. */
export function checkPoolSpec(field: string, spec: PoolSpec, violations: Violations): void {
  checkSelector(`${field}.hosts`, spec.hosts, violations);
  if (spec.size !== undefined && (spec.size < 1 || spec.size > membersMax)) {
    violations.add(`${field}.size`, `must be from 1 to ${membersMax}, or unset for all`);
  }
  violations.addIf(`${field}.image`, imageProblem(spec.image));
  checkPins(`${field}.pins`, spec.pins, violations);
  checkDuration(`${field}.poll_interval`, spec.pollInterval, 10_000, dayMs, violations);
  const { historyLimit: limit } = spec;
  if (limit !== undefined && (limit < 1 || limit > historyLimitMax)) {
    violations.add(`${field}.history_limit`, `must be from 1 to ${historyLimitMax}`);
  }
  if (spec.deploy !== undefined) checkDeploySpec(`${field}.deploy`, spec.deploy, violations);
  if (spec.rollout !== undefined) checkRollout(`${field}.rollout`, spec.rollout, violations);
  const bytes = toBinary(PoolSpecSchema, spec).byteLength;
  if (bytes > specBytesMax) {
    violations.add(field, `takes ${bytes} bytes; at most ${specBytesMax} are kept`);
  }
}

/**
 * Adds that a new gate names no approver, or a URL that the fleet does not permit; a present URL
 * stays valid.
 */
export function checkGate(
  field: string,
  { spec }: Pool,
  before: PoolSpec | undefined,
  policy: Policy,
  violations: Violations,
): void {
  const known = before?.rollout?.gate;
  const { webhookUrl: url = '', approval = false, deadline } = spec?.rollout?.gate ?? {};
  const isNew = deadline !== undefined && deadline.seconds !== known?.deadline?.seconds;
  if (isNew && url === '' && !approval) {
    const description = 'asks nobody, whatever its deadline: set approval or webhook_url';
    violations.add(`${field}.rollout.gate`, description);
  }
  if (url === '' || url === known?.webhookUrl) return;
  if (urlProblem(url) !== undefined) return;
  const problem = reachProblem(policy, { step: 'webhook', arguments: { url } });
  if (problem === undefined) return;
  violations.add(`${field}.rollout.gate.webhook_url`, `is refused: ${problem}`);
}

function checkPins(
  field: string,
  pins: Readonly<Record<string, string>>,
  violations: Violations,
): void {
  const entries = Object.entries(pins);
  if (entries.length > pinsMax) {
    violations.add(field, `has ${entries.length} pins; at most ${pinsMax} are kept`);
    return;
  }
  for (const [host, image] of entries) {
    violations.addIf(`${field}[${quote(host)}]`, nameProblem('hosts', host));
    violations.addIf(`${field}[${quote(host)}]`, pinProblem(image));
  }
}

function checkRollout(field: string, policy: RolloutPolicy, violations: Violations): void {
  const { waves, windows, maxUnavailable, failureThreshold, gate } = policy;
  checkAmount(`${field}.max_unavailable`, maxUnavailable, 0, violations);
  checkAmount(`${field}.failure_threshold`, failureThreshold, 1, violations);
  const { maxUnavailablePerRack: perRack } = policy;
  if (perRack !== undefined && (perRack < 1 || perRack > membersMax)) {
    violations.add(`${field}.max_unavailable_per_rack`, `must be from 1 to ${membersMax}`);
  }
  checkDuration(`${field}.soak`, policy.soak, 0, 7 * dayMs, violations);
  checkDuration(`${field}.health_timeout`, policy.healthTimeout, minuteMs, dayMs, violations);
  checkDuration(`${field}.gate.deadline`, gate?.deadline, minuteMs, 30 * dayMs, violations);
  const { webhookUrl = '' } = gate ?? {};
  if (webhookUrl !== '') violations.addIf(`${field}.gate.webhook_url`, urlProblem(webhookUrl));
  if (waves.length > wavesMax) {
    violations.add(`${field}.waves`, `has ${waves.length} waves; at most ${wavesMax} are kept`);
  }
  for (const [index, { name, hosts }] of waves.slice(0, wavesMax).entries()) {
    if (name.length > waveNameCharsMax || /\p{Cc}/u.test(name)) {
      const description = `must have at most ${waveNameCharsMax} characters`;
      violations.add(`${field}.waves[${index}].name`, description);
    }
    checkSelector(`${field}.waves[${index}].hosts`, hosts, violations);
  }
  if (windows.length > windowsMax) {
    const description = `has ${windows.length} windows; at most ${windowsMax} are kept`;
    violations.add(`${field}.windows`, description);
  }
  for (const [index, window] of windows.slice(0, windowsMax).entries()) {
    for (const { field: part, description } of windowProblems(window)) {
      violations.add(`${field}.windows[${index}].${part}`, description);
    }
  }
}

function checkAmount(
  field: string,
  given: PoolAmount | undefined,
  min: number,
  violations: Violations,
): void {
  if (given === undefined) return;
  const { amount } = given;
  if (amount.case === undefined) {
    violations.add(field, 'is empty; give a count or a percentage, or leave it out');
    return;
  }
  const max = amount.case === 'percent' ? 100 : membersMax;
  if (amount.value >= min && amount.value <= max) return;
  violations.add(`${field}.${amount.case}`, `must be from ${min} to ${max}`);
}

function checkDuration(
  field: string,
  duration: Duration | undefined,
  minMs: number,
  maxMs: number,
  violations: Violations,
): void {
  if (duration === undefined) return;
  const ms = durationMs(duration);
  if (ms >= minMs && ms <= maxMs) return;
  violations.add(field, `must be from ${durationText(minMs)} to ${durationText(maxMs)}`);
}

/** "7 days", in the largest unit that gives a whole number. */
function durationText(ms: number): string {
  const units = [
    ['day', dayMs],
    ['hour', 3_600_000],
    ['minute', minuteMs],
    ['second', 1_000],
  ] as const;
  const [name, unitMs] = units.find(([, each]) => ms > 0 && ms % each === 0) ?? ['second', 1_000];
  return counted(ms / unitMs, name);
}
