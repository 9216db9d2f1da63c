/** The events of a change of a pool's record. Pure. */
import type { RolloutTarget, store as wire } from '@rackwright/messages';
import { added, type EventContent, type EventDraft, type RecordChange } from './event-draft.ts';

export function poolEventsOf({
  segments,
  before,
  after,
}: RecordChange<wire.PoolRecord>): EventDraft {
  const { uid = '' } = after?.pool ?? before?.pool ?? {};
  const about = { subject: `pools/${segments[1]}` };
  if (after === undefined) {
    return { ...about, contents: [{ case: 'poolRemoved', value: { uid } }] };
  }
  const created: EventContent[] =
    before === undefined ? [{ case: 'poolCreated', value: { uid } }] : [];
  const contents = [
    ...created,
    ...targetEventsOf(before, after),
    ...failureEventsOf(before, after),
    ...pauseEventsOf(before, after),
    ...endEventsOf(before, after),
  ];
  return { ...about, contents };
}

function targetOf(record: wire.PoolRecord | undefined): RolloutTarget | undefined {
  return record?.pool?.status?.target;
}

function targetEventsOf(
  before: wire.PoolRecord | undefined,
  after: wire.PoolRecord,
): EventContent[] {
  const [was, is] = [targetOf(before), targetOf(after)];
  if (is === undefined || was?.digest === is.digest) return [];
  const { image, reference, version } = is;
  const back = after.pool?.status?.rolledBackFrom ?? '';
  const rolledBackFrom = back === before?.pool?.status?.rolledBackFrom ? '' : back;
  const value = { image, reference, version, fromImage: was?.image ?? '', rolledBackFrom };
  return [{ case: 'rolloutStarted', value }];
}

function failureEventsOf(
  before: wire.PoolRecord | undefined,
  after: wire.PoolRecord,
): EventContent[] {
  const failures = added(
    before?.failures ?? [],
    after.failures,
    ({ hostUid, digest, attempts }) => `${hostUid} ${digest} ${attempts}`,
  );
  return failures.map(({ host, image, message }) => ({
    case: 'rolloutHostFailed',
    value: { host, image, message },
  }));
}

function pauseEventsOf(
  before: wire.PoolRecord | undefined,
  after: wire.PoolRecord,
): EventContent[] {
  const isPaused = (record: wire.PoolRecord | undefined) =>
    record?.pool?.spec?.rollout?.paused === true;
  if (isPaused(before) === isPaused(after)) return [];
  if (isPaused(after)) return [{ case: 'rolloutPaused', value: {} }];
  // A pool that is created without a pause was not resumed.
  return before === undefined ? [] : [{ case: 'rolloutResumed', value: {} }];
}

function endEventsOf(before: wire.PoolRecord | undefined, after: wire.PoolRecord): EventContent[] {
  const contents: EventContent[] = [];
  const [was, is] = [targetOf(before), targetOf(after)];
  const { halt } = after;
  const haltOf = (each: wire.PoolHalt | undefined) => `${each?.digest} ${each?.basis}`;
  if (halt !== undefined && haltOf(halt) !== haltOf(before?.halt)) {
    const value = { image: is?.image ?? '', message: halt.message };
    contents.push({ case: 'rolloutHalted', value });
  }
  const isSame = was?.digest === is?.digest;
  if (is !== undefined && after.targetSettled && !(isSame && before?.targetSettled === true)) {
    const { image, version } = is;
    contents.push({ case: 'rolloutCompleted', value: { image, version } });
  }
  return contents;
}
