/**
 * A host that was switched on to run its image and has not reported that it does. This is the only
 * text for that, made from all known signs, whichever part first finds that the time is over. Pure.
 */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampDate, timestampMs } from '@bufbuild/protobuf/wkt';
import { agent, awaitImageStep, durationText, type RunFailure } from '@rackwright/messages';
import type { Pass, PassView } from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { stepFailure, truncate } from '../pass/step-failure.ts';
import { proofTimeoutMs, switchedOnMs } from './deployment.ts';

const { HostSignKind: Kind } = agent;

/** The words for each kind of sign, about the host or about the party that reported it. */
const signTexts: Readonly<Record<number, (detail: string) => string>> = {
  [Kind.ADDRESS_ASKED]: () => 'a system on it asked for an address',
  [Kind.NETBOOT]: (stage) => `it asked for a network boot (${stage})`,
  [Kind.FIRST_BOOT_FETCHED]: () => 'it fetched the data of its first boot',
  [Kind.WRONG_TOKEN]: (from) =>
    `${from} phoned home for it with a token that is not this deployment’s, and was refused`,
  [Kind.OUTDATED_CALL]: (from) =>
    `${from} phoned home for an earlier deployment of it, and was refused`,
  [Kind.NOT_DURABLE]: (from) =>
    `${from} phoned home for it, and was told to call again: the agent’s disk did not take it`,
};

/** The most signs of a record, and the most characters of each detail. */
const signsMax = 8;
const detailMax = 64;

/** The signs of the awaited host, from an attempt that failed or is in progress. */
export function foldSigns(
  { record }: Pass,
  step: StepView,
  signs: readonly agent.HostSign[],
  { isEnd }: { readonly isEnd: boolean },
): void {
  if (step.name !== awaitImageStep || signs.length === 0) return;
  const known = signs.filter(({ kind }) => signTexts[kind] !== undefined).slice(0, signsMax);
  const kept = known.map(({ kind, time, detail }) => {
    const sign = { kind, detail: truncate(detail, detailMax) };
    return create(agent.HostSignSchema, time === undefined ? sign : { ...sign, time });
  });
  // Before the end only a new kind of sign is stored: each write is a revision.
  if (isEnd || newsOf(kept) !== newsOf(record.signs)) record.signs = kept;
}

function newsOf(signs: readonly agent.HostSign[]): string {
  return [...new Set(signs.map(({ kind }) => kind))].toSorted((a, b) => a - b).join();
}

/** "it asked for a network boot (script)", with times, the latest last. */
export function signsSeen(
  signs: readonly agent.HostSign[],
): { readonly text: string; readonly since?: Timestamp }[] {
  return signs
    .toSorted((a, b) => msOf(a.time) - msOf(b.time))
    .map(({ kind, detail, time }) => {
      const text = signTexts[kind]?.(detail) ?? '';
      return time === undefined ? { text } : { text, since: time };
    });
}

function msOf(time: Timestamp | undefined): number {
  return time === undefined ? 0 : timestampMs(time);
}

/** `detail`: the words of the part that waited for it. */
export function hostNotProved(pass: PassView, run: RunView, detail = ''): RunFailure {
  const { record, status } = pass;
  const on = switchedOnMs(run);
  const since = on === undefined ? '' : ` at ${new Date(on).toISOString()}`;
  const waited = durationText(proofTimeoutMs(record.deploy));
  const seen = [
    ...signsSeen(record.signs).map(({ text, since: at }) => {
      return at === undefined ? text : `${text} at ${timestampDate(at).toISOString()}`;
    }),
    ...(record.signs.length === 0 ? ['nothing was seen of it since'] : []),
    ...(status.poweredOn === false ? ['it has been seen off since'] : []),
  ];
  const text =
    `the host was switched on${since} to run ${record.image}, and has not phoned home in ` +
    `${waited}; ${seen.join('; ')}; ${bootedFrom(pass)}; look at its console: whether it boots ` +
    'that, has an address on the provisioning network, and runs cloud-init to the end';
  return stepFailure('notProved', text, detail);
}

/** What it was to boot, and what may prevent its firmware from booting it. */
function bootedFrom({ record, status }: PassView): string {
  if (record.deploy?.netboot === true) return 'it was to boot over the network';
  const { disk = '', bootEntryProblem = '' } = status.writtenDisk ?? {};
  const from =
    disk === '' ? 'it was to boot from its disk' : `it was to boot from its disk ${disk}`;
  return bootEntryProblem === '' ? from : `${from}, without a boot entry (${bootEntryProblem})`;
}
